"""Reductions that numpy computes in loops over a few numbers each, with the same bits in loops over many.

numpy's innermost loop runs along the last axis, and a loop over three numbers costs as much as one over a hundred:

    [9216, 5] over the last axis    five columns, combined one after the other
    [8, 4096, 3] over axis 1        as [8, 32, 384] over axis 1: rows of 128 pixels; then these 128 pixels
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ....graph.dtypes import Array

_FEW = 7  # numpy adds up to eight numbers of a row one after the other, eight and more in another order
_LARGE = 1 << 11
_WIDE = 128  # numbers in a loop


def reduce_few(ufunc: np.ufunc, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
    """`ufunc.reduce` over `axes`, in the type of `x`."""
    return _by_column(ufunc, x, keep) if _is_few(x, axes) else ufunc.reduce(x, axes, x.dtype, keepdims=keep)


def reduce_extreme(ufunc: np.ufunc, x: Array, axes: tuple[int, ...], keep: bool, of_nothing: Any) -> Any:
    """`np.maximum` or `np.minimum` over `axes`, whose order does not matter; `of_nothing` is that of no numbers."""
    if _is_few(x, axes):
        return _by_column(ufunc, x, keep)
    images, rows, columns, shape = _layout(x.shape, axes, keep)
    together = _WIDE // max(1, columns)
    if not 1 < columns < _WIDE or rows < 2 * together or not x.flags.c_contiguous:
        # with a value to begin with, numpy is more than twice as fast
        return ufunc.reduce(x, axes, keepdims=keep, initial=of_nothing)
    lines, whole = x.reshape(images, rows, columns), rows - rows % together
    wide = ufunc.reduce(lines[:, :whole].reshape(images, -1, together * columns), 1).reshape(images, together, columns)
    result = ufunc.reduce(wide, 1)
    if whole < rows:
        ufunc(result, ufunc.reduce(lines[:, whole:], 1), out=result)
    return result.reshape(shape)


def _is_few(x: Array, axes: tuple[int, ...]) -> bool:
    """Whether each of many results is that of a few numbers of the last axis."""
    return axes == (x.ndim - 1,) and x.size >= _LARGE and 1 < x.shape[-1] <= _FEW


def _by_column(ufunc: np.ufunc, x: Array, keep: bool) -> Array:
    result = x[..., 0].copy()
    for column in range(1, x.shape[-1]):
        ufunc(result, x[..., column], out=result)
    return result[..., None] if keep else result


@lru_cache(1 << 10)
def _layout(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> tuple[int, int, int, tuple[int, ...]]:
    """Sizes before, of and after the axes if these are neighbours, else zeros; and the shape of the result."""
    kept = [size for axis, size in enumerate(shape) if axis not in axes]
    result = tuple([1 if axis in axes else size for axis, size in enumerate(shape)] if keep else kept)
    first, end = min(axes, default=0), max(axes, default=-1) + 1
    if not axes or end - first > len(axes) or not prod(shape):
        return 0, 0, 0, result
    return prod(shape[:first]), prod(shape[first:end]), prod(shape[end:]), result
