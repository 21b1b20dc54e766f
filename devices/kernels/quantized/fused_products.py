"""Products of bytes fused with a bias, a ReLU and the way back to bytes or floats, as oneDNN does them.

The operands are multiplied as the integers they are, so the first one's zero must be the integer 0, and the range of
the second one symmetric. A unit is what 1 in the 32-bit sums stands for:

    uint8 over [0, 4] times int8 over [-2, 2]        unit = 4 / 255 * 2 / 127
    sums of products -> + bias / unit -> ReLU -> int32 in units
                                            '-> * unit / (largest of the frozen range / 255) -> uint8

Everything after the exact sums is float32, rounded once at the end with ties to even. Matrix products with a float bias
try to make up for a minimum other than 0, but TensorFlow does so by far too much; the numbers here are TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ....graph.ops.nn.windows import window_attrs
from ..checks import require
from ..nn.conv_arithmetic import convolve
from ..nn.depthwise_arithmetic import depthwise
from ..nn.sliding import sweep
from ..registry import Construction, Kernel, kernel, outputs
from .ranges import range_of

_Integers = np.dtype[np.integer[Any]]
_Bounds = tuple[Array, Array]


def _one_range(low: Array, high: Array) -> _Bounds:
    """The ends of a range; InvalidArgumentError unless they are scalars."""
    bounds = range_of(low, high)
    return np.asarray(bounds.low), np.asarray(bounds.high)


def _top(dtype: _Integers) -> np.float32:
    """The integer that stands for the largest absolute value of a range."""
    return np.float32(np.iinfo(dtype).max)


def _largest(low: Array, high: Array) -> Array:
    return np.asarray(np.maximum(np.abs(low), np.abs(high)), np.float32)


def _width(low: Array, high: Array, dtype: _Integers) -> Array:
    """The step between two integers of a range, whose lowest int8 is -127."""
    return np.asarray((high - low) / (_top(dtype) * np.float32(2 if dtype.kind == "i" else 1)), np.float32)


def _sums_in_range(sums: Array, steps: Array) -> tuple[Array, Array, Array]:
    """32-bit integers with the range in which they need no scaling."""
    ends = steps * np.float32(2.0**31)
    return np.rint(sums).astype(np.int32), np.float32(0) - ends, ends


def _exactly(product: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """A product of bytes in float64, in which sums of 2**37 terms are exact."""
    return product(a.astype(np.float64), b.astype(np.float64))


class _After:
    """What an op does with sums of products: read from its name and types when the kernel is made."""

    def __init__(self, node: Construction) -> None:
        self.has_bias = "WithBias" in node.op
        self.has_relu = "Relu" in node.op
        self.requantizes = node.op.endswith("Requantize")
        self.dtype = numpy_dtype(node.output_types[0])

    def bias(self, bias: Array, unit: Array) -> Array:
        """The bias in units; an integer one is in units already."""
        return (bias if bias.dtype.kind == "f" else bias.astype(np.float32) * unit) / unit

    def finish(self, sums: Array, unit: Array, steps: Array, frozen: _Bounds | None) -> Any:
        """The outputs: sums in units as 32-bit integers, or as bytes of a frozen range."""
        sums = np.maximum(sums, np.float32(0)) if self.has_relu else sums
        if frozen is None:
            return _sums_in_range(sums, steps)
        info = np.iinfo(self.dtype)
        scale = unit / (_largest(*frozen) / _top(self.dtype))
        return np.clip(np.rint(sums * scale), info.min, info.max).astype(self.dtype), *frozen


@kernel(
    "QuantizedMatMulWithBias",
    "QuantizedMatMulWithBiasAndDequantize",
    "QuantizedMatMulWithBiasAndRelu",
    "QuantizedMatMulWithBiasAndReluAndRequantize",
    "QuantizedMatMulWithBiasAndRequantize",
)
def mat_mul(node: Construction) -> Kernel:
    """The product of two matrices plus a bias for each column."""
    after, dequantizes = _After(node), node.op.endswith("Dequantize")
    is_scaled = dequantizes and node.attrs["input_quant_mode"] == b"SCALED"
    if node.attrs["transpose_a"] or node.attrs["transpose_b"]:
        raise UnimplementedError(f"{node.op} takes no transposed matrices")

    def run(a: Array, b: Array, bias: Array, low_a: Array, high_a: Array, *ends: Array) -> Any:
        shapes = f"{shape_text(a.shape)}, {shape_text(b.shape)}"
        require(a.ndim == 2 and b.ndim == 2, f"{node.op} takes matrices, not {shapes}")
        require(a.shape[1] == b.shape[0], f"Matrix size-incompatible: {shapes}")
        columns = b.shape[1:]
        require(bias.shape == columns, f"the bias must have shape {shape_text(columns)}: {shape_text(bias.shape)}")
        bounds, weights = _one_range(low_a, high_a), _one_range(*ends[:2])
        reach = _largest(*bounds) if is_scaled else bounds[1] - bounds[0]
        unit = np.asarray(reach / _top(a.dtype) * (_largest(*weights) / _top(b.dtype)), np.float32)
        if bias.dtype.kind == "f" and not is_scaled:
            bias = bias + b.sum(0, np.int64).astype(np.float32) * (_top(a.dtype) * bounds[0] / reach)
        sums = _exactly(np.matmul, a, b)
        if dequantizes:
            return (sums * unit).astype(np.float32) + after.bias(bias, unit) * unit
        frozen = _one_range(*ends[2:]) if after.requantizes else None
        steps = _width(*bounds, a.dtype) * _width(*weights, b.dtype)
        return outputs(after.finish(sums.astype(np.float32) + after.bias(bias, unit), unit, steps, frozen))

    return run


@kernel(
    *("QuantizedConv2DAndRelu", "QuantizedConv2DAndReluAndRequantize", "QuantizedConv2DAndRequantize"),
    *("QuantizedConv2DPerChannel", "QuantizedConv2DWithBias", "QuantizedConv2DWithBiasAndRelu"),
    *("QuantizedConv2DWithBiasAndReluAndRequantize", "QuantizedConv2DWithBiasAndRequantize"),
    *("QuantizedDepthwiseConv2D", "QuantizedDepthwiseConv2DWithBias", "QuantizedDepthwiseConv2DWithBiasAndRelu"),
    "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
)
def conv_2d(node: Construction) -> Kernel:
    """A convolution of images [batch, rows, columns, channels]; the filter may have a range for each channel."""
    after, attrs = _After(node), window_attrs(node.attrs, "NHWC")
    arithmetic = depthwise if "Depthwise" in node.op else convolve
    if node.attrs.get("padding_list"):
        raise UnimplementedError(f"{node.op} pads as `padding` says, not by `padding_list`")

    def run(x: Array, w: Array, *others: Array) -> Any:
        bias, ends = (others[0], others[1:]) if after.has_bias else (None, others)
        require(x.ndim == 4, f"input must be 4-dimensional: {shape_text(x.shape)}")
        require(w.ndim == 4, f"filter must be 4-dimensional: {shape_text(w.shape)}")
        require(x.shape[3] == w.shape[2], f"input and filter must have the same depth: {x.shape[3]} vs {w.shape[2]}")
        bounds, low, high = _one_range(*ends[:2]), *ends[2:4]
        walked = sweep(attrs, x.shape[1:3], w.shape[:2])
        sums = _exactly(lambda a, b: arithmetic(a, b, walked), x, w)
        require(low.shape == high.shape and low.size in (1, sums.shape[3]), "a filter range for each channel, or one")
        unit = np.asarray(_largest(*bounds) / _top(x.dtype) * (_largest(low, high) / _top(w.dtype)), np.float32)
        if not after.requantizes and low.size > 1:
            sums = sums * (unit / unit.max())
        if bias is not None:
            require(bias.shape == sums.shape[3:], f"the bias must have shape {shape_text(sums.shape[3:])}")
            sums = sums.astype(np.float32) + np.rint(after.bias(bias, unit))
        frozen = _one_range(*ends[4:6]) if after.requantizes else None
        return outputs(after.finish(sums, unit, _width(*bounds, x.dtype) * _width(low, high, w.dtype), frozen))

    return run
