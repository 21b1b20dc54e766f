"""Sums of products, as 32-bit integers of a wide range, become bytes of a narrower one.

The range may be asked for, or be that of the values that there are.
"""

from __future__ import annotations

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..elementwise.whole import whole
from ..registry import Construction, Kernel, kernel
from .ranges import Range, Ranged, Scaled, as_floats, range_of


def to_bytes(x: Array, old: Range, new: Range) -> Array:
    """uint8 for int32, in fixed-point arithmetic of 16 and 32 fractional bits, as in TensorFlow."""
    width = np.float32(new.high - new.low)
    if width == 0:
        return np.zeros(x.shape, np.uint8)
    per_unit = np.float32(255.0 / float(width))
    scale = whole(255.0 * (1 << 16) * float(np.float32(old.high - old.low)) / float(width))
    middle = float(np.float32(old.low + old.high)) / 2.0
    start = whole(float(np.float32(middle) * per_unit) * (1 << 16))
    first = whole(float(np.round(float(new.low) * 255.0 * (1 << 16) / float(width))))
    offset = np.array(start - first + (1 << 15) & 2**64 - 1, np.uint64).astype(np.int64)
    fixed = ((x.astype(np.int64) * scale) >> 32) + offset
    return np.asarray(np.clip(fixed >> 16, 0, 255), np.uint8)


def used_range(x: Array, bounds: Range) -> Range:
    """The range of the values that there are, and zero."""
    ends = np.array([x.min(), x.max()], x.dtype) if x.size else np.zeros(2, x.dtype)
    low, high = as_floats(ends, bounds)
    return Range(min(low, np.float32(0)), high)


@kernel("RequantizationRange")
def requantization_range(node: Construction) -> Kernel:
    """The smallest range with all values, and zero."""
    return lambda x, low, high: tuple(used_range(x, range_of(low, high)))


@kernel("Requantize")
def requantize(node: Construction) -> Kernel:
    """The values in the range that was asked for."""
    dtype = numpy_dtype(node.output_types[0])

    def run(x: Array, low: Array, high: Array, new_low: Array, new_high: Array) -> Ranged:
        old, new = range_of(low, high), range_of(new_low, new_high)
        require(bool(new.low <= 0), f"requested_output_min must be <= 0, but got {new.low:g}")
        require(
            bool(new.high >= new.low),
            f"requested_output_max must be >= requested_output_min, but got {new.high:g} and {new.low:g}",
        )
        values = (
            to_bytes(x, old, new) if dtype == np.uint8 else Scaled(new, dtype).integers(Scaled(old, x.dtype).floats(x))
        )
        return values, new.low, new.high

    return run


@kernel("QuantizeDownAndShrinkRange")
def quantize_down_and_shrink_range(node: Construction) -> Kernel:
    """The values in the smallest range with all of them, and zero."""

    def run(x: Array, low: Array, high: Array) -> Ranged:
        old = range_of(low, high)
        new = used_range(x, old)
        return to_bytes(x, old, new), new.low, new.high

    return run


def _each_scale(low: Array, high: Array) -> Array:
    return np.maximum(np.abs(low), np.abs(high)).astype(np.float32)


@kernel("RequantizationRangePerChannel")
def requantization_range_per_channel(node: Construction) -> Kernel:
    """One symmetric range for all channels (the last axis), from zero on if no value is negative, up to a limit."""
    limit = np.float32(node.attrs["clip_value_max"])

    def run(x: Array, low: Array, high: Array) -> tuple[np.float32, np.float32]:
        require(x.ndim == 4, "input must be in NHWC format")
        channels = x.shape[3]
        require(low.size == channels, f"input_min has incorrect size, expected {channels} was {low.size}")
        require(high.size == channels, f"input_max has incorrect size, expected {channels} was {high.size}")
        require(x.size > 0, f"input must not be empty, got shape {shape_text(x.shape)}")
        most = np.abs(x.astype(np.float32)).max(axis=(0, 1, 2))
        reach = _each_scale(low, high) * most / np.float32(2**31)
        largest = min(reach.max(initial=np.finfo(np.float32).tiny), limit)
        return np.float32(0) if (x >= 0).all() else np.float32(-largest), np.float32(largest)

    return run


@kernel("RequantizePerChannel")
def requantize_per_channel(node: Construction) -> Kernel:
    """The values in the range that was asked for, each channel (the last axis) scaled by itself; ties to even."""
    dtype = numpy_dtype(node.output_types[0])
    info = np.iinfo(dtype)

    def run(x: Array, low: Array, high: Array, new_low: Array, new_high: Array) -> Ranged:
        require(x.ndim == 4, "Current RequantizePerChannel operatorsupports 4D tensors only.")
        channels = x.shape[3]
        require(low.size == channels, f"input_min has incorrect size, expected {channels} was {low.size}")
        require(high.size == channels, f"input_max has incorrect size, expected {channels} was {high.size}")
        new = range_of(new_low, new_high)
        text = f"If out_type is QINT8, requested_output_max must be non negative, got {new.low:g}"
        require(dtype == np.uint8 or bool(new.low < 0), text)
        largest = max(abs(new.low), abs(new.high))
        scales = np.float32(info.max) * (_each_scale(low, high) / np.float32(2**31) / largest)
        values = np.rint(x.astype(np.float32) * scales)
        return np.clip(values, info.min, info.max).astype(dtype), new.low, new.high

    return run
