"""Sums of products: as numpy computes them for wide types, rounded step by step for the half types.

Values of a half type are held in float32. Every number that is kept between two steps is rounded to the half type, in
the order and with the registers of TensorFlow's CPU kernels: a sum of n products that is rounded n times differs from
the exact one by more than a tolerance for one rounding.

The order in TensorFlow's matrix product of half types on a CPU, inferred from its bits: columns are processed sixteen,
eight, or one at a time. Together, products are rounded before they are added; a single column adds the product
unrounded. Eight columns by four rows have two running sums, of even and odd positions, for as many positions as are a
multiple of eight. For a single row it is the reverse: the columns beyond the last multiple of eight round their
products first. Every 320 positions the sums are added to the result.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ....graph.dtypes import Array, DataType, numpy_dtype
from ..half_types import BFLOAT16, is_half
from .products import matrix_product

_PANEL, _REGISTER, _ROWS, _UNROLLED, _DEPTH = 16, 8, 4, 8, 320
_LARGE = 1 << 24  # more products are summed in float32: fast, at the cost of the last bits


class Arithmetic(Protocol):
    """How one element type is multiplied and summed."""

    def product(self, a: Array, b: Array) -> Array:
        """The matrix product."""

    def add(self, total: Array, more: Array) -> None:
        """Adds to `total` in place."""

    def sum_of_few(self, values: Array) -> Array:
        """The sum over the last axis."""

    def sums_over_rows(self, values: Array) -> Array:
        """The sums over axis 1, in order."""


class Plain:
    """Arithmetic of types that numpy sums directly."""

    def product(self, a: Array, b: Array) -> Array:
        """The matrix product."""
        return matrix_product(a, b)

    def add(self, total: Array, more: Array) -> None:
        """Adds to `total` in place."""
        total += more

    def sum_of_few(self, values: Array) -> Array:
        """The sum over the last axis; up to seven numbers one by one, as numpy does, but for all rows at once."""
        if not 0 < values.shape[-1] < _REGISTER:
            return np.asarray(values.sum(-1, dtype=values.dtype))
        total = values[..., 0].copy()
        for index in range(1, values.shape[-1]):
            total += values[..., index]
        return total

    def sums_over_rows(self, values: Array) -> Array:
        """The sums over axis 1."""
        return np.asarray(values.sum(1, dtype=values.dtype))


class Half:
    """Arithmetic of a half type whose values are held in float32."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype

    def rounded(self, values: Array) -> Array:
        """The nearest values of the type, in float32."""
        if self._dtype == BFLOAT16:
            return _round_to_bfloat16(values)
        return np.asarray(values.astype(self._dtype).astype(np.float32))

    def add(self, total: Array, more: Array) -> None:
        """Adds to `total` in place and rounds."""
        total[...] = self.rounded(total + more)

    def sum_of_few(self, values: Array) -> Array:
        """The sum over the last axis: eight numbers at a time are summed in float32, the remaining ones singly."""
        whole = values.shape[-1] - values.shape[-1] % _REGISTER
        total = np.zeros(values.shape[:-1], np.float32)
        for start in range(0, whole, _REGISTER):
            self.add(total, self.rounded(values[..., start : start + _REGISTER].sum(-1, dtype=np.float32)))
        for index in range(whole, values.shape[-1]):
            self.add(total, values[..., index])
        return total

    def sums_over_rows(self, values: Array) -> Array:
        """The sums over axis 1, in order."""
        total = np.zeros((values.shape[0], *values.shape[2:]), np.float32)
        for index in range(values.shape[1]):
            self.add(total, values[:, index])
        return total

    def product(self, a: Array, b: Array) -> Array:
        """The matrix product, summed in the order that the module docstring describes."""
        if a.shape[0] * a.shape[1] * b.shape[1] > _LARGE:
            return self.rounded(matrix_product(a, b))
        result = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for start in range(0, a.shape[1], _DEPTH):
            self.add(result, self._block(a[:, start : start + _DEPTH], b[start : start + _DEPTH]))
        return result

    def _block(self, a: Array, b: Array) -> Array:
        rows, columns = a.shape[0], b.shape[1]
        panels, registers = columns - columns % _PANEL, columns - columns % _REGISTER
        if rows == 1:
            return np.concatenate([self._singly(a, b[:, :registers]), self._together(a, b[:, registers:])], axis=1)
        fours = rows - rows % _ROWS
        result = np.empty((rows, columns), np.float32)
        result[:, :panels] = self._together(a, b[:, :panels])
        result[:fours, panels:registers] = self._alternating(a[:fours], b[:, panels:registers])
        result[fours:, panels:registers] = self._together(a[fours:], b[:, panels:registers])
        result[:, registers:] = self._singly(a, b[:, registers:])
        return result

    def _together(self, a: Array, b: Array) -> Array:
        total = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for column, row in zip(a.T[:, :, None], b, strict=True) if total.size else ():
            self.add(total, self.rounded(column * row))
        return total

    def _singly(self, a: Array, b: Array) -> Array:
        total = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for column, row in zip(a.T[:, :, None], b, strict=True) if total.size else ():
            self.add(total, column * row)
        return total

    def _alternating(self, a: Array, b: Array) -> Array:
        unrolled = a.shape[1] - a.shape[1] % _UNROLLED
        total = self._together(a[:, :unrolled:2], b[:unrolled:2])
        self.add(total, self._together(a[:, 1:unrolled:2], b[1:unrolled:2]))
        for column, row in zip(a.T[unrolled:, :, None], b[unrolled:], strict=True) if total.size else ():
            self.add(total, self.rounded(column * row))
        return total


PLAIN = Plain()


def arithmetic_of(dtype: DataType) -> Arithmetic:
    """How TensorFlow's CPU kernels sum products of this element type."""
    target = numpy_dtype(dtype)
    return Half(target) if is_half(target) else PLAIN


def _round_to_bfloat16(values: Array) -> Array:
    """To the nearest, ties to even, in the upper half of the bits; infinities and not-a-numbers stay."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    up = bits >> np.uint32(16)
    up &= np.uint32(1)
    up += np.uint32(0x7FFF)
    up += bits
    up &= np.uint32(0xFFFF0000)
    rounded = up.view(np.float32)
    return np.where(np.isnan(values), values, rounded)
