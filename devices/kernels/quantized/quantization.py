"""Quantisation: floats to small integers over a range, back again, and both at once.

The lowest and the highest integer represent the ends of the output range.

The three modes are those of the op documentation of `tf.quantization.quantize`: MIN_COMBINED spreads the range over all
integers, MIN_FIRST does so with a rounded zero point, SCALED keeps zero at zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..half_types import BFLOAT16, in_float32
from ..registry import Construction, Kernel, kernel

_LARGEST = np.finfo(np.float32).max


def _round_away(x: Array) -> Array:
    return np.asarray(np.trunc(x + np.copysign(0.5, x)))


def _along(values: Array, ndim: int, axis: int) -> Array:
    """Ends of ranges, shaped to broadcast along `axis` of a tensor of `ndim` axes (-1: scalars, unchanged)."""
    return values.reshape(()) if axis < 0 else values.reshape((-1,) + (1,) * (ndim - axis - 1))


def _check_ends(x: Array, low: Array, high: Array, axis: int) -> None:
    """InvalidArgumentError unless both ends hold one number, or one per slice along the axis."""
    for name, end in (("min_range", low), ("max_range", high)):
        if axis < 0 and end.size != 1:
            raise InvalidArgumentError(
                f"If axis is not specified, {name} must contain a single float element, "
                f"but it contains {end.size} elements"
            )
        if axis >= 0 and not (axis < x.ndim and end.shape == (x.shape[axis],)):
            raise InvalidArgumentError(
                f"If axis is specified, {name} must be a 1-D tensor whose size matches the axis dimension of the "
                f"input and output tensors, but {name} is a {end.ndim}-D tensor of size {end.size} and input's axis "
                f"dimension is of size {x.shape[axis] if axis < x.ndim else 0}"
            )


@dataclass(frozen=True, slots=True)
class IntegerSteps:
    """The integers of a quantised type: the lowest and highest in use, and half their number if they are signed."""

    lowest: float
    highest: float
    half: float
    count: float


def _steps(dtype: np.dtype[np.integer[Any]], narrow: bool) -> IntegerSteps:
    info = np.iinfo(dtype)
    count = float(info.max) - float(info.min) + 1
    half = count / 2 if info.min < 0 else 0.0
    return IntegerSteps(float(info.min) + narrow, float(info.max), half, count)


def _scale(low: Array, high: Array, steps: IntegerSteps) -> Array:
    """Integers per unit so that both ends fit; an end on the wrong side of zero is ignored."""
    with np.errstate(divide="ignore", invalid="ignore"):
        by_low = np.where(steps.lowest * low > 0, steps.lowest / low, _LARGEST)
        by_high = np.where(steps.highest * high > 0, steps.highest / high, _LARGEST)
    return np.minimum(by_low, by_high)


def _combined(x: Array, low: Array, high: Array, steps: IntegerSteps) -> Array:
    """Whole steps from `low`, in float32 as in TensorFlow: the last digits of 32-bit integers are lost."""
    a, b = low.astype(np.float32), high.astype(np.float32)
    scale = ((steps.highest - steps.lowest) / (high - low)).astype(np.float32)
    return _round_away((np.clip(x, a, b) - a) * scale - np.float32(steps.half))


@kernel("QuantizeV2")
def quantize(node: Construction) -> Kernel:
    """The integers that represent the floats, and the range that all integers represent."""
    dtype = numpy_dtype(node.output_types[0])
    mode, axis = node.attrs["mode"], int(node.attrs["axis"])
    steps = _steps(dtype, mode == b"SCALED" and bool(node.attrs["narrow_range"]))
    least = float(node.attrs["ensure_minimum_range"])
    half_even = node.attrs["round_mode"] == b"HALF_TO_EVEN"
    if half_even and mode != b"SCALED":
        raise InvalidArgumentError(
            f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode.decode()}'."
        )
    rounding = np.rint if half_even else _round_away

    def quantised(x: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        _check_ends(x, low, high, axis)
        if mode == b"MIN_FIRST" and axis >= 0:
            raise UnimplementedError("MIN_FIRST mode is not implemented for Quantize with axis != -1.")
        if np.any(high < low):
            raise InvalidArgumentError("input_max_range must be larger than input_min_range.")
        start = np.minimum(0, low.astype(np.float64))
        reach = np.maximum(1, np.maximum(np.abs(low), np.abs(high))) * least
        end = np.maximum(0, np.maximum(high, start + reach))
        a, b = _along(start, x.ndim, axis), _along(end, x.ndim, axis)
        if mode == b"SCALED":
            scale = _scale(start, end, steps)
            start, end = steps.lowest / scale, steps.highest / scale
            whole = rounding(x * _along(scale, x.ndim, axis))
        elif mode == b"MIN_FIRST":
            scale_first = (steps.count - 1) / (b - a)
            whole = _round_away(x * scale_first) - _round_away(a * scale_first) + steps.lowest
        else:
            whole = _combined(x, a, b, steps)
        values = np.clip(whole, steps.lowest, steps.highest).astype(dtype)
        return values, np.asarray(start, np.float32), np.asarray(end, np.float32)

    return quantised


@kernel("Dequantize")
def dequantize(node: Construction) -> Kernel:
    """The floats that integers of a range represent."""
    dtype = numpy_dtype(node.input_types[0])
    mode, axis, target = node.attrs["mode"], int(node.attrs["axis"]), numpy_dtype(node.output_types[0])
    steps = _steps(dtype, mode == b"SCALED" and bool(node.attrs["narrow_range"]))
    if target == BFLOAT16 and mode != b"MIN_COMBINED":
        raise InvalidArgumentError(
            f"When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '{mode.decode()}'"
        )

    def floats(x: Array, low: Array, high: Array) -> Array:
        _check_ends(x, low, high, axis)
        a, b = (_along(end.astype(np.float64), x.ndim, axis) for end in (low, high))
        if mode == b"SCALED":
            unit = np.maximum(a / steps.lowest, b / steps.highest) if steps.lowest else b / steps.highest
            result = x * unit
        elif mode == b"MIN_FIRST":
            unit, a = ((b - a) / (steps.count - 1)).astype(np.float32), a.astype(np.float32)
            start = np.where(unit == 0, a, _round_away(a / unit) * unit)  # float32 decides whether this is a tie
            result = (x - steps.lowest) * unit + start
        else:
            unit = (b - a) / (steps.count - 1)
            result = (x.astype(np.float64) + steps.half) * unit + a
        return np.asarray(result, target)

    return floats


@kernel("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(node: Construction) -> Kernel:
    """Floats rounded to whole multiples of a step, as if they had been integers of `num_bits` in between."""
    attrs = node.attrs
    signed, range_given, axis = bool(attrs["signed_input"]), bool(attrs["range_given"]), int(attrs["axis"])
    narrow, half_up = bool(attrs["narrow_range"]), attrs.get("round_mode") == b"HALF_UP"
    scalars_only = node.op == "QuantizeAndDequantizeV2"

    def steps_for(bits: int) -> IntegerSteps:
        require(1 + signed <= bits <= 63, f"num_bits is out of range: {bits} with signed_input {int(signed)}")
        highest = float(2 ** (bits - 1) - 1 if signed else 2**bits - 1)
        return IntegerSteps((-highest if narrow else -highest - 1) if signed else 0.0, highest, 0.0, 0.0)

    def rounded(x: Array, low: Array, high: Array, bits: Array | None = None) -> Array:
        steps = steps_for(int(attrs["num_bits"] if bits is None else bits))
        scalar = x.dtype.type
        if not range_given:
            axes = tuple(a for a in range(x.ndim) if a != axis) if axis >= 0 else None
            low, high = (np.asarray(f(x, axis=axes)) for f in (np.min, np.max)) if x.size else (low, high)
        elif scalars_only and (low.ndim or high.ndim):
            raise InvalidArgumentError(f"input_{'min' if low.ndim else 'max'} must be a scalar.")
        elif np.any(low > high):
            raise InvalidArgumentError(f"Invalid range: input_min {low.item(0):g} > input_max {high.item(0):g}")
        scale = _along(np.asarray(_scale(low, high, steps), x.dtype), x.ndim, axis)
        if range_given:
            x = np.clip(x, scalar(steps.lowest) / scale, scalar(steps.highest) / scale)
        whole = np.floor(x * scale + scalar(0.5)) if half_up else np.rint(x * scale)
        return np.asarray(whole / scale, x.dtype)

    return in_float32(rounded, node.output_types[0])
