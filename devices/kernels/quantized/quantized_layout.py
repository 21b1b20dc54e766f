"""Poolings and rearrangements of integers that stand for the numbers of a range."""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array
from ..arrays.shape_ops import reshape
from ..arrays.slicing import concatenate
from ..checks import require
from ..nn.pool import max_pool, pooling_of, valid_counts, window_sums
from ..registry import Construction, Kernel, kernel
from .ranges import Range, Ranged, Scaled, range_of


@kernel("QuantizedReshape")
def quantized_reshape(node: Construction) -> Kernel:
    """As Reshape; the range stays."""
    return lambda x, shape, low, high: (reshape(x, shape), low, high)


@kernel("QuantizedMaxPool")
def quantized_max_pool(node: Construction) -> Kernel:
    """As MaxPool; the range stays."""
    pool = max_pool(node)
    return lambda x, low, high: (pool(x), *range_of(low, high))


@kernel("QuantizedAvgPool")
def quantized_avg_pool(node: Construction) -> Kernel:
    """The mean of the cells of each window, rounded towards zero; the range stays."""
    pooling = pooling_of(node)

    def pool(x: Array, low: Array, high: Array) -> Ranged:
        cells = pooling.enter(x)
        walked = pooling.sweep(cells.shape[1:-1])
        total = window_sums(cells.astype(np.int32), walked)
        mean = np.trunc(total / valid_counts(walked, cells.shape[1:-1], np.dtype(np.float64)))
        return pooling.leave(mean.astype(x.dtype)), *range_of(low, high)

    return pool


@kernel("QuantizedConcat", "QuantizedConcatV2")
def quantized_concat(node: Construction) -> Kernel:
    """As Concat, in a range with all numbers and zero, symmetric for signed integers."""
    count, axis_at = int(node.attrs["N"]), int(node.attrs["N"]) if node.op.endswith("V2") else 0

    def run(*tensors: Array) -> Ranged:
        axis, inputs = tensors[axis_at], tensors[:axis_at] + tensors[axis_at + 1 :]
        values, lows, highs = inputs[:count], inputs[count : 2 * count], inputs[2 * count :]
        require(all(end.ndim == 0 for end in (*lows, *highs)), "QuantizedConcat: ranges must be scalars")
        ranges = [range_of(low, high) for low, high in zip(lows, highs, strict=True)]
        zero = np.float32(0)
        joint = Range(min(zero, *(each.low for each in ranges)), max(zero, *(each.high for each in ranges)))
        if values[0].dtype.kind == "i":
            largest = max(-joint.low, joint.high)
            joint = Range(np.float32(-largest), largest)
        parts = [
            x if each == joint else Scaled(joint, x.dtype).integers(Scaled(each, x.dtype).floats(x))
            for x, each in zip(values, ranges, strict=True)
        ]
        return concatenate(parts, axis), *joint

    return run
