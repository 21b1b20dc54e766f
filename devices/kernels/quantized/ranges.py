"""Integers that stand for the numbers of a range: conversions, bit for bit as TensorFlow's CPU ops do them.

The lowest integer stands for `low` and the highest for `high`; `low` is moved to a whole number of steps, so that zero
is represented exactly.

    uint8 over [-1, 1]: 0 is -1.004, 128 is 0, 255 is 0.996
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....graph.dtypes import Array
from ..checks import require

Ranged = tuple[Array, np.float32, np.float32]
"""integers, and the ends of their range"""
_Integers = np.dtype[np.integer[Any]]


class Range(NamedTuple):
    """The ends of a range, in float32."""

    low: np.float32
    high: np.float32


def range_of(low: Array, high: Array) -> Range:
    """The range of two scalar inputs."""
    require(low.size == 1 and high.size == 1, "the ends of a quantised range must be scalars")
    return Range(np.float32(low.item()), np.float32(high.item()))


def _round_away(x: Array) -> Array:
    return np.asarray(np.trunc(x + np.copysign(0.5, x)))


def _steps(dtype: _Integers) -> float:
    return float(2 ** (8 * dtype.itemsize))


def unclamped(x: Array, bounds: Range, dtype: _Integers) -> Array:
    """Integers (as int64) that stand for floats, also for those outside of the range."""
    lowest, steps = int(np.iinfo(dtype).min), _steps(dtype)
    if bounds.low == bounds.high:
        return np.full(np.shape(x), lowest, np.int64)
    width = float(bounds.high - bounds.low) * (steps / (steps - 1))
    scale = steps / width
    whole = _round_away(x.astype(np.float64) * scale) - _round_away(np.asarray(float(bounds.low) * scale))
    return whole.astype(np.int64) + lowest


def as_integers(x: Array, bounds: Range, dtype: _Integers) -> Array:
    """Integers that stand for floats; those outside of the range get the nearest end."""
    info = np.iinfo(dtype)
    return np.clip(unclamped(x, bounds, dtype), info.min, info.max).astype(dtype)


def zero_of(bounds: Range, dtype: _Integers) -> int:
    """The integer that stands for zero; it may be none of the type's."""
    return int(unclamped(np.zeros(()), bounds, dtype))


def as_floats(x: Array, bounds: Range) -> Array:
    """The float32 numbers that integers stand for."""
    if bounds.low == bounds.high:
        return np.full(x.shape, bounds.low, np.float32)
    steps, lowest = _steps(x.dtype), int(np.iinfo(x.dtype).min)
    unit = float(bounds.high - bounds.low) * (steps / (steps - 1)) / steps
    coarse = np.float32(unit)
    start = float(_round_away(np.asarray(bounds.low / coarse)) * coarse)
    return (start + (x.astype(np.float64) - lowest) * unit).astype(np.float32)


def one_step(bounds: Range, dtype: _Integers) -> np.float32:
    """The float between two neighbouring integers."""
    info = np.iinfo(dtype)
    return np.float32(float(bounds.high - bounds.low) / float(int(info.max) - int(info.min)))


def range_of_products(a: Range, a_type: _Integers, b: Range, b_type: _Integers, dtype: _Integers) -> Range:
    """The range of `dtype` in which products of two quantised numbers need no scaling."""
    unit, info = one_step(a, a_type) * one_step(b, b_type), np.iinfo(dtype)
    return Range(np.float32(unit * np.float32(info.min)), np.float32(unit * np.float32(info.max)))


def range_of_sums(a: Range, b: Range, spare_bits: int) -> Range:
    """A symmetric range of 32-bit integers with room for sums of 2**spare_bits numbers of two ranges."""
    largest = max(a.high, -a.low, b.high, -b.low) * np.float32(1 << spare_bits)
    return Range(np.float32(-largest), np.float32(largest))


def moved(x: Array, old: Range, new: Range, dtype: _Integers) -> Array:
    """The integers of another range, or another type, for the same numbers."""
    return as_integers(as_floats(x, old), new, dtype)


class Scaled(NamedTuple):
    """How TensorFlow converts some tensors whole: all in float32, so that 32-bit integers lose their last digits."""

    bounds: Range
    dtype: _Integers

    def floats(self, x: Array) -> Array:
        """The floats that integers stand for."""
        low, high = self.bounds
        unit = np.float32(float(high - low) / (_steps(self.dtype) - 1))
        first = low if low == high else np.float32(_round_away(np.asarray(low / unit)) * unit)
        return (first - np.float32(np.iinfo(self.dtype).min) * unit) + x.astype(np.float32) * unit

    def integers(self, x: Array) -> Array:
        """The integers that stand for floats."""
        low, high = self.bounds
        info = np.iinfo(self.dtype)
        scale = np.float32(0 if low == high else (_steps(self.dtype) - 1) / float(high - low))
        start = np.float32(_round_away(np.asarray(low * scale))) - np.float32(info.min)
        highest = min(float(info.max), 2147483520.0)  # the greatest float32 below 2**31
        return np.clip(_round_away(x * scale) - start, info.min, highest).astype(self.dtype)
