"""Average and maximum pooling over two or three spatial axes, and their gradients.

Padding takes part in no maximum and in no average. If several cells of a window have the maximum, the first in
row-major order counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ....graph.ops.nn.pool_shapes import PoolAttrs, pool_attrs
from ..checks import require
from ..half_types import in_float32
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .sliding import Sweep, as_laid_out, channels_last, sweep, winners

_FEW_CELLS = 9  # such a small window costs little more cell by cell than axis by axis


class Pooling:
    """The attrs of one pooling node and the walks of its window, memoised by input shape."""

    def __init__(self, attrs: PoolAttrs) -> None:
        self.attrs = attrs
        self.rank = attrs.windows.rank
        self.sweep: Callable[[tuple[int, ...]], Sweep] = lru_cache(maxsize=32)(self._sweep)

    def _sweep(self, sizes: tuple[int, ...]) -> Sweep:
        return sweep(self.attrs.windows, sizes, self.attrs.window)

    def enter(self, x: Array, what: str = "tensor_in_shape") -> Array:
        """`x` channels last, its rank checked."""
        if x.ndim != self.rank:
            raise InvalidArgumentError(f"{what} must have {self.rank - 2} spatial dimensions. {x.ndim} 0")
        return channels_last(x, self.attrs.windows)

    def leave(self, x: Array) -> Array:
        """`x` in the node's channel order."""
        return as_laid_out(x, self.attrs.windows)


def pooling_of(node: Construction) -> Pooling:
    attrs = pool_attrs(node.attrs, "NDHWC" if "3D" in node.op else "NHWC")
    if attrs.depth_window != 1:
        raise UnimplementedError("Non-spatial pooling is not yet supported.")
    return Pooling(attrs)


def lowest(dtype: np.dtype[Any]) -> Any:
    """The lowest value of `dtype`."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else dtype.type(-np.inf)


@lru_cache(1 << 8)
def _spans(walked: Sweep, axis: int, size: int) -> list[tuple[slice, slice]]:
    """For each window cell along an axis the outputs for which it lies inside, and the cells that it then covers."""
    return [walked.covered(axis, offset, size) for offset in range(walked.window[axis])]


def _reduced_by_axis(x: Array, walked: Sweep, combine: np.ufunc, empty: Any) -> Array:
    """Combines the cells of each window, one spatial axis after the other: k + k steps in place of k * k.

    No padding is added: a window cell beyond the edge is left out. `empty` is the result of a window without any cell.
    """
    for axis, window in enumerate(walked.window):
        spans = _spans(walked, axis, x.shape[axis + 1])
        if window == 1 and spans[0] == (slice(0, x.shape[axis + 1]), slice(0, x.shape[axis + 1], 1)):
            continue
        before, output = (slice(None),) * (axis + 1), walked.walks[axis].output
        whole = [offset for offset, (out, _) in enumerate(spans) if out == slice(0, output)]
        if whole:
            result = x[(*before, spans[whole[0]][1])].copy()
        else:
            result = np.full((*x.shape[: axis + 1], output, *x.shape[axis + 2 :]), empty, x.dtype)
        for offset, (out, seen) in enumerate(spans):
            if offset not in whole[:1]:
                target = result[(*before, out)]
                combine(target, x[(*before, seen)], out=target)
        x = result
    return x


def _maxima(x: Array, walked: Sweep) -> Array:
    """Channels-last maxima; half types compare by value as they are."""
    return _reduced_by_axis(x, walked, np.maximum, lowest(x.dtype))


def _depth_maxima(x: Array, attrs: PoolAttrs) -> Array:
    """Maxima over neighbouring channels; as in TensorFlow the windows must tile the channels."""
    window, channels = attrs.depth_window, x.shape[-1]
    if attrs.depth_stride != window:
        raise UnimplementedError("Depthwise max pooling requires the depth window to equal the depth stride.")
    if channels % window:
        raise UnimplementedError("Depthwise max pooling requires the depth window to evenly divide the input depth.")
    return np.asarray(x.reshape(*x.shape[:-1], channels // window, window).max(axis=-1))


def _max_pool(attrs: PoolAttrs) -> Kernel:
    pooling = Pooling(attrs)

    def pool(x: Array) -> Array:
        x = pooling.enter(x)
        result = _depth_maxima(x, attrs) if attrs.depth_window > 1 else _maxima(x, pooling.sweep(x.shape[1:-1]))
        return pooling.leave(result)

    return pool


@kernel("MaxPool", "MaxPool3D")
def max_pool(node: Construction) -> Kernel:
    """The maximum of each window; over channels instead where the window says so."""
    return _max_pool(pool_attrs(node.attrs, "NDHWC" if node.op == "MaxPool3D" else "NHWC"))


def four(values: Array, what: str) -> tuple[int, ...]:
    """The elements of a tensor of four, which may have any shape."""
    require(values.size == 4, f"Sliding window {what} field must specify 4 dimensions")
    return tuple(values.reshape(-1).tolist())


@kernel("MaxPoolV2")
def max_pool_v2(node: Construction) -> Kernel:
    """MaxPool with window and strides as tensors."""

    @lru_cache(maxsize=16)
    def pool_of(window: tuple[int, ...], strides: tuple[int, ...]) -> Kernel:
        return _max_pool(pool_attrs({**node.attrs, "ksize": window, "strides": strides}, "NHWC"))

    def pool(x: Array, window: Array, strides: Array) -> Array:
        result: Array = pool_of(four(window, "ksize"), four(strides, "stride"))(x)
        return result

    return pool


def _scattered(values: Array, positions: Array, shape: Sequence[int]) -> Array:
    """Zeros of `shape`, plus each value at its position."""
    count = prod(shape)
    if values.dtype.kind == "f":  # summed in float64 and rounded once
        return np.bincount(positions.ravel(), values.ravel(), count).astype(values.dtype).reshape(shape)
    result = np.zeros(count, values.dtype)
    np.add.at(result, positions.ravel(), values.ravel())
    return result.reshape(shape)


def _check_like(value: Array, shape: Sequence[int], what: str) -> None:
    if value.shape != tuple(shape):
        raise InvalidArgumentError(
            f"Expected {what} shape to be {shape_text(shape)}, but got {shape_text(value.shape)}"
        )


def _max_pool_grad(pooling: Pooling) -> Kernel:
    def gradient(x: Array, pooled: Array, grad: Array) -> Array:
        x = pooling.enter(x)
        walked = pooling.sweep(x.shape[1:-1])
        expected = (x.shape[0], *walked.output, x.shape[-1])
        grad, pooled = pooling.enter(grad), pooling.enter(pooled)
        _check_like(pooled, expected, "orig_output")
        _check_like(grad, expected, "grad")
        return pooling.leave(_scattered(grad, winners(x, _maxima(x, walked), walked), x.shape))

    return gradient


def _max_pool_grad_grad(pooling: Pooling) -> Kernel:
    def gradient(x: Array, pooled: Array, grad: Array) -> Array:
        x = pooling.enter(x)
        walked = pooling.sweep(x.shape[1:-1])
        grad, pooled = pooling.enter(grad), pooling.enter(pooled)
        _check_like(pooled, (x.shape[0], *walked.output, x.shape[-1]), "orig_output")
        _check_like(grad, x.shape, "grad")
        return pooling.leave(grad.reshape(-1)[winners(x, _maxima(x, walked), walked)])

    return gradient


@kernel("MaxPoolGrad", "MaxPoolGradGrad", "MaxPool3DGradGrad")
def max_pool_grad(node: Construction) -> Kernel:
    """The gradient of MaxPool, and the gradient of that, through the first maximum of each window."""
    make = _max_pool_grad_grad if node.op.endswith("GradGrad") else _max_pool_grad
    return in_float32(make(pooling_of(node)), node.output_types[0])


@kernel("MaxPoolGradV2", "MaxPoolGradGradV2")
def max_pool_grad_v2(node: Construction) -> Kernel:
    """MaxPoolGrad and MaxPoolGradGrad with window and strides as tensors."""
    make = _max_pool_grad_grad if node.op == "MaxPoolGradGradV2" else _max_pool_grad

    @lru_cache(maxsize=16)
    def gradient_of(window: tuple[int, ...], strides: tuple[int, ...]) -> Kernel:
        return make(Pooling(pool_attrs({**node.attrs, "ksize": window, "strides": strides}, "NHWC")))

    def gradient(x: Array, pooled: Array, grad: Array, window: Array, strides: Array) -> Array:
        result: Array = gradient_of(four(window, "ksize"), four(strides, "strides"))(x, pooled, grad)
        return result

    return in_float32(gradient, node.output_types[0])


@kernel("MaxPool3DGrad")
def max_pool_3d_grad(node: Construction) -> Kernel:
    """The gradient of MaxPool3D: unlike in two dimensions, every cell that equals the maximum gets it."""
    pooling = pooling_of(node)

    def gradient(x: Array, pooled: Array, grad: Array) -> Array:
        x = pooling.enter(x)
        walked = pooling.sweep(x.shape[1:-1])
        pooled, grad = pooling.enter(pooled), pooling.enter(grad)
        expected = (x.shape[0], *walked.output, x.shape[-1])
        _check_like(pooled, expected, "orig_output")
        _check_like(grad, expected, "grad")
        padded = walked.padded(x, lowest(x.dtype))
        result = np.zeros(padded.shape, grad.dtype)
        for _, seen in walked.taps():
            result[seen] += np.where(padded[seen] == pooled, grad, grad.dtype.type(0))
        return pooling.leave(result[walked.inside(x.shape[1:-1])])

    return in_float32(gradient, node.output_types[0])


@kernel("MaxPoolWithArgmax")
def max_pool_with_argmax(node: Construction) -> Kernel:
    """The maximum of each window and its position in the flattened input."""
    pooling = pooling_of(node)
    index_type, with_batch = numpy_dtype(node.output_types[1]), bool(node.attrs["include_batch_in_index"])

    def pool(x: Array) -> tuple[Array, Array]:
        x = pooling.enter(x)
        walked = pooling.sweep(x.shape[1:-1])
        pooled = _maxima(x, walked)
        positions = winners(x, pooled, walked)
        if not with_batch and positions.size:
            positions %= x[0].size
        return pooled, positions.astype(index_type)

    return pool


@kernel("MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(node: Construction) -> Kernel:
    """The gradient of MaxPoolWithArgmax: each gradient goes to the position in argmax."""
    pooling, with_batch = pooling_of(node), bool(node.attrs["include_batch_in_index"])

    def gradient(x: Array, grad: Array, argmax: Array) -> Array:
        x = pooling.enter(x)
        _check_like(grad, (x.shape[0], *pooling.sweep(x.shape[1:-1]).output, x.shape[-1]), "grad")
        _check_like(argmax, grad.shape, "argmax")
        positions = argmax.astype(np.int64).reshape(grad.shape[0], -1)
        if not with_batch:
            positions = positions + np.arange(grad.shape[0])[:, None] * (x[0].size if x.shape[0] else 0)
        if positions.size and not 0 <= positions.min() <= positions.max() < x.size:
            raise InvalidArgumentError(f"Invalid argmax: positions must lie in [0, {x.size})")
        return _scattered(grad, positions, x.shape)

    return in_float32(gradient, node.output_types[0])


def valid_counts(walked: Sweep, sizes: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """The number of cells in each window: an array that broadcasts against the pooled output."""
    counts: Array = np.ones((1,) * (len(sizes) + 2), dtype)
    for axis, (walk, window, size) in enumerate(zip(walked.walks, walked.window, sizes, strict=True)):
        start = np.arange(walk.output) * walked.strides[axis] - walk.before
        along = np.minimum(start + window, size) - np.maximum(start, 0)
        counts = counts * along.astype(dtype).reshape((1,) * (axis + 1) + (-1,) + (1,) * (len(sizes) - axis))
    return counts


def window_sums(x: Array, walked: Sweep) -> Array:
    """The sum of each window: small windows cell by cell, which rounds as in TensorFlow, others axis by axis."""
    if prod(walked.window) > _FEW_CELLS:
        return _reduced_by_axis(x, walked, np.add, 0)
    padded = walked.padded(x, 0)
    _, first = next(taps := iter(walked.taps()))
    total: Array = padded[first].copy()
    for _, seen in taps:
        total += padded[seen]
    return total


@kernel("AvgPool", "AvgPool3D")
def avg_pool(node: Construction) -> Kernel:
    """The mean of the cells of each window."""
    pooling = pooling_of(node)

    def pool(x: Array) -> Array:
        x = pooling.enter(x)
        walked = pooling.sweep(x.shape[1:-1])
        total = window_sums(x, walked)
        return pooling.leave(total / valid_counts(walked, x.shape[1:-1], x.dtype))

    return in_float32(pool, node.output_types[0])


@kernel("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(node: Construction) -> Kernel:
    """The gradient of AvgPool, distributed equally over the cells of each window."""
    pooling = pooling_of(node)
    windows = pooling.attrs.windows

    def gradient(input_shape: Array, grad: Array) -> Array:
        require(
            input_shape.ndim == 1 and input_shape.size == pooling.rank,
            f"out_backprop must be 1-dimensional and {pooling.rank} elements",
        )
        shape = tuple(int(n) for n in input_shape)
        sizes = windows.spatial(shape)
        grad = pooling.enter(grad, "out_backprop")
        walked = pooling.sweep(sizes)
        _check_like(grad, (shape[0], *walked.output, shape[windows.channel_axis]), "grad")
        share = grad * (1 / valid_counts(walked, sizes, grad.dtype))  # TensorFlow rounds here
        return pooling.leave(_spread(share, sizes, walked))

    return in_float32(gradient, node.output_types[0])


def _spread(share: Array, sizes: Sequence[int], walked: Sweep) -> Array:
    """To each cell the shares of all its windows, in the order of the windows: cell by cell, or window by window."""
    if prod(walked.window) > prod(walked.output):
        return _spread_by_window(share, sizes, walked)
    grown = [n + w.before + w.after for n, w in zip(sizes, walked.walks, strict=True)]
    padded = np.zeros(output_shape((share.shape[0], *grown, share.shape[-1]), share.dtype), share.dtype)
    for _, seen in reversed(walked.taps()):  # so that the shares of a cell are added in the order of its windows
        padded[seen] += share
    return padded[walked.inside(sizes)]


def _spread_by_window(share: Array, sizes: Sequence[int], walked: Sweep) -> Array:
    result = np.zeros(output_shape((share.shape[0], *sizes, share.shape[-1]), share.dtype), share.dtype)
    for place in np.ndindex(*walked.output):
        starts = [p * step - walk.before for p, step, walk in zip(place, walked.strides, walked.walks, strict=True)]
        ends = [start + size for start, size in zip(starts, walked.window, strict=True)]
        seen = [slice(max(start, 0), max(end, 0)) for start, end in zip(starts, ends, strict=True)]
        result[(slice(None), *seen)] += share[(slice(None), *[slice(p, p + 1) for p in place])]
    return result
