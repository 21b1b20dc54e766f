"""Sorts of several arrays together, by a function of two elements of each that says whether the first ones come first.

A comparator that compares one array's elements is numpy's sort. With any other, runs that are sorted are merged, all
pairs of runs together. An element's place in the merged run is its place in its own run plus the number of elements of
the other run before it, which a binary search finds, with one call of the comparator for all elements:

    [3 1 | 2 0]  ->  [1 3] [0 2]  ->  1: 0 + 1, 3: 1 + 2, 0: 0 + 0, 2: 1 + 1  ->  [0 1 2 3]

The sort is stable, whether that is asked for or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType
from ..checks import require, scalar_of
from ..datasets.dataset import PullSteps
from ..registry import Call, Construction, Start, deferred_kernel
from .computations import XlaComputation, carry_out


@deferred_kernel("XlaVariadicSort")
def variadic_sort(node: Construction) -> Start:
    """All arrays in one order along an axis."""
    types = list(chain.from_iterable((dtype, dtype) for dtype in node.output_types))
    comparator = XlaComputation(node, "comparator", types, (DataType.BOOL,))

    def start(call: Call, *inputs: Array) -> None:
        *arrays, dimension = map(np.asarray, inputs)
        shape = arrays[0].shape
        require(all(x.shape == shape for x in arrays), "the arrays of a sort must have one shape")
        number = scalar_of(dimension, "dimension")
        axis = number + (len(shape) if number < 0 else 0)
        require(0 <= axis < max(len(shape), 1), f"no dimension {number} to sort in shape {shape_text(shape)}")
        carry_out(call, _sorted(comparator, arrays, axis))

    return start


def _sorted(comparator: XlaComputation, arrays: Sequence[Array], axis: int) -> PullSteps[Sequence[Array]]:
    if not arrays[0].ndim or arrays[0].shape[axis] < 2:
        return arrays
    rows = [np.moveaxis(x, axis, -1) for x in arrays]
    order = _order_by_key(comparator, rows)
    if order is None:
        flat = [row.reshape(-1, row.shape[-1]) for row in rows]
        order = (yield from _merged(comparator, flat)).reshape(rows[0].shape)
    return [np.moveaxis(np.take_along_axis(row, order, -1), -1, axis) for row in rows]


def _order_by_key(comparator: XlaComputation, rows: Sequence[Array]) -> Array | None:
    """The order along the last axis, if the comparator is less or greater of one array."""
    op, positions = comparator.operation or ("", ())
    if op not in ("Less", "Greater") or positions[0] // 2 != positions[1] // 2 or positions[0] == positions[1]:
        return None
    key = rows[positions[0] // 2]
    if (op == "Less") == (positions[0] < positions[1]):
        return np.argsort(key, -1, kind="stable")
    backward = np.argsort(key[..., ::-1], -1, kind="stable")[..., ::-1]
    return np.asarray(key.shape[-1] - 1 - backward)


def _merged(comparator: XlaComputation, rows: Sequence[Array]) -> PullSteps[Array]:
    """The order within each row of arrays [rows, n]."""
    count, size = rows[0].shape
    order = np.broadcast_to(np.arange(size), (count, size)).copy()
    run = 1
    while run < size:
        present = [np.take_along_axis(row, order, -1) for row in rows]
        targets = yield from _merged_places(comparator, present, run)
        merged = np.empty_like(order)
        np.put_along_axis(merged, targets, order, -1)
        order, run = merged, 2 * run
    return order


def _merged_places(comparator: XlaComputation, rows: Sequence[Array], run: int) -> PullSteps[Array]:
    """Where each element goes when each two runs of a row are merged."""
    count, size = rows[0].shape
    own = np.arange(size)
    is_left, begin = own // run % 2 == 0, own // (2 * run) * (2 * run)
    middle = np.minimum(begin + run, size)
    first = np.where(is_left, middle, begin)
    low = np.broadcast_to(first, (count, size)).copy()
    high = np.broadcast_to(np.where(is_left, np.minimum(middle + run, size), middle), (count, size)).copy()
    while (is_open := low < high).any():
        row, place = np.nonzero(is_open)
        probe = (low + high)[is_open] // 2
        left, right = (np.where(is_left[place] == side, place, probe) for side in (True, False))
        pairs = chain.from_iterable((x[row, right], x[row, left]) for x in rows)
        comes_first = (yield from comparator.each(*pairs))[0]
        is_before = comes_first == is_left[place]
        low[row, place] = np.where(is_before, probe + 1, low[row, place])
        high[row, place] = np.where(is_before, high[row, place], probe)
    return np.asarray(np.where(is_left, own, own - run) + low - first)
