"""Sums and products of float32 and float64 in the order of TensorFlow's CPU kernels, which decides the last bits.

Those kernels add vector registers of 256 bits, 8 or 4 numbers each, to four running sums. 75 numbers of float32:

    registers      0 1 2 3 4 5 6 7 8 and 3 numbers
    running sums   0+4  1+5  2+6  3+7              a lane of a register never meets another one
    one register   (((0+4) + (1+5)) + (2+6)) + (3+7) + 8
    folded         lanes i and i+4, then i and i+2, then i and i+1
    and the rest   the 3 numbers, summed by themselves, are added

So it is for a tensor that is reduced to one number, which may be the loss of a training program. The first axes are
reduced the same way, row by row instead of register by register: columns in whole registers have four running sums if
there are 16 rows or more. Other columns are summed row after row. The order was found by experiments with TensorFlow
2.21.

Rows are reduced as if each were alone, if they are short. Reductions of long rows, of axes in the middle, and of many
numbers to one are numpy's: in TensorFlow's order they would take several times as long.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from .narrow import reduce_few

ORDERED_TYPES = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
LARGE = 1 << 12  # more numbers are reduced to one fast, at the cost of the last bit
SHORT = 32  # longer rows are reduced fast, too
_REGISTER = 32  # bytes
_RUNNING = 4  # sums of whole registers
_FEW_ROWS = 16  # fewer are summed one after the other
# for two scalars many times as fast
_OF_SCALARS: dict[np.ufunc, Callable[[Any, Any], Any]] = {np.add: operator.add, np.multiply: operator.mul}


def reduce_in_order(ufunc: np.ufunc, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
    """`np.add` or `np.multiply` over distinct `axes` (none negative) of a float32 or float64 tensor, in its type."""
    columns, length, shape = _layout(x.shape, axes, keep)
    if columns == 1:
        result = reduce_all(ufunc, x)
    elif columns > 1:
        result = reduce_rows(ufunc, x.reshape(-1, columns))
    elif length * x.itemsize >= _REGISTER:
        result = reduce_lists(ufunc, np.ascontiguousarray(x.reshape(-1, length).T))
    else:
        return reduce_few(ufunc, x, axes, keep)
    return result.reshape(shape) if shape else result


@lru_cache(1 << 10)
def _layout(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> tuple[int, int, tuple[int, ...]]:
    """How many columns are left if the first axes are reduced, how long rows are if they are short; the result's shape.

    A number is 0 where other axes are reduced.
    """
    kept = [size for axis, size in enumerate(shape) if axis not in axes]
    columns, length = prod(kept), prod(shape[axis] for axis in axes)
    first = columns == 1 or (max(axes, default=0) < len(axes) and length > 0)
    last = min(axes, default=0) == len(kept) and length <= SHORT and columns > 0
    result = [1 if axis in axes else size for axis, size in enumerate(shape)] if keep else kept
    return columns if first else 0, length if last else 0, tuple(result)


def reduce_all(ufunc: np.ufunc, x: Array) -> Any:
    """`np.add` or `np.multiply` over all numbers of a float32 or float64 tensor: a scalar of its type."""
    return ufunc.reduce(x, None) if x.size > LARGE else reduce_lists(ufunc, x.reshape(-1))


def reduce_lists(ufunc: np.ufunc, numbers: Array) -> Any:
    """A vector to a scalar, or each column of a contiguous matrix as if it were a vector."""
    lanes, size = _REGISTER // numbers.itemsize, len(numbers)
    rest = size % lanes
    if rest == size:
        return ufunc.reduce(numbers)
    whole = size - rest
    register = numbers[:whole]
    if whole > lanes:
        register = _interleaved(ufunc, register.reshape(whole // lanes, -1))
        register = register.reshape(lanes, *numbers.shape[1:])
    while lanes > 2:
        lanes //= 2
        register = ufunc(register[:lanes], register[lanes:])
    combine = _OF_SCALARS[ufunc]
    result = combine(register[0], register[1])
    return combine(result, ufunc.reduce(numbers[whole:])) if rest else result


def reduce_rows(ufunc: np.ufunc, matrix: Array) -> Array:
    """Each column of a matrix that has rows and columns."""
    rows, columns = matrix.shape
    matrix = np.ascontiguousarray(matrix)
    beyond = columns % (_REGISTER // matrix.itemsize)
    if rows < _FEW_ROWS or beyond == columns:
        return reduce_row_by_row(ufunc, matrix)
    if not beyond:
        return _interleaved(ufunc, matrix)
    whole = columns - beyond
    return np.concatenate([_interleaved(ufunc, matrix[:, :whole]), reduce_row_by_row(ufunc, matrix[:, whole:])])


def reduce_row_by_row(ufunc: np.ufunc, matrix: Array) -> Array:
    """Each column of a contiguous matrix, or of some of its columns, from the first row to the last, in its type."""
    if matrix.shape[1] == 1 and matrix.shape[0]:  # numpy would reduce a single column pairwise
        return np.asarray(ufunc.accumulate(matrix[:, 0], dtype=matrix.dtype)[-1:])
    return np.asarray(ufunc.reduce(matrix, 0, matrix.dtype))


def _interleaved(ufunc: np.ufunc, matrix: Array) -> Array:
    """Every fourth row of their whole number by itself, then these four and the remaining rows one by one."""
    rows, columns = matrix.shape
    last = rows - rows % _RUNNING
    if last > _RUNNING:
        running = ufunc.reduce(matrix[:last].reshape(-1, _RUNNING, columns), 0)
        matrix = running if last == rows else np.concatenate([running, matrix[last:]])
    return np.asarray(ufunc.reduce(matrix, 0))
