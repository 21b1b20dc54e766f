"""Kernels that look for elements: Where, Unique, ListDiff. Results are in the order of first appearance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, numpy_dtype
from ..registry import Construction, Kernel, kernel, simple


def where(condition: Array) -> Array:
    """The coordinates of all elements that are not zero, one a row, in row-major order."""
    if condition.ndim == 0:
        raise InvalidArgumentError("WhereOp : Unhandled input dimensions: 0")
    return np.argwhere(condition)


simple("Where", where)


def _first_seen(keys: list[Any]) -> tuple[list[int], list[int], list[int]]:  # keys of any hashable type
    """The index at which each distinct key appears first, the number of the key at each index, and the counts."""
    number: dict[Any, int] = {}
    first: list[int] = []
    numbers: list[int] = []
    counts: list[int] = []
    for place, key in enumerate(keys):
        class_number = number.setdefault(key, len(number))
        if class_number == len(first):
            first.append(place)
            counts.append(0)
        counts[class_number] += 1
        numbers.append(class_number)
    return first, numbers, counts


def _distinct(x: Array) -> tuple[Array, Array, Array]:
    """As `_first_seen`, for the elements of a vector; all NaN are different."""
    if x.dtype.kind not in "iufb" or x.size < 32:
        first, numbers, counts = _first_seen(x.tolist())
        return np.array(first, np.int64), np.array(numbers, np.int64), np.array(counts, np.int64)
    _, places, inverse, times = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(places)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return places[order], rank[inverse], times[order]


def _compared_axis(x: Array, axis: Array | None) -> int:
    if axis is None or axis.size == 0:
        if axis is not None and axis.ndim != 1:
            raise InvalidArgumentError("axis expects a 1D vector.")
        if x.ndim != 1:
            raise InvalidArgumentError("unique expects a 1D vector.")
        return 0
    if axis.ndim != 1:
        raise InvalidArgumentError("axis expects a 1D vector.")
    if axis.size > 1:
        raise InvalidArgumentError("axis does not support input tensors larger than 1 elements")
    place = int(axis[0])
    if not -x.ndim <= place < x.ndim:
        raise InvalidArgumentError(f"axis has to be between [0, {x.ndim})")
    return place % x.ndim


@kernel("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(node: Construction) -> Kernel:
    """The distinct elements (or slices along an axis), the number of the one at each index, and the counts."""
    dtype = numpy_dtype(node.attrs["out_idx"])
    counted = len(node.output_types) == 3

    def run(x: Array, axis: Array | None = None) -> tuple[Array, ...]:
        place = _compared_axis(x, axis)
        if x.ndim == 1:
            first, numbers, counts = _distinct(x)
        else:
            rows = [tuple(row.reshape(-1).tolist()) for row in np.moveaxis(x, place, 0)]
            first, numbers, counts = (np.array(listed, np.int64) for listed in _first_seen(rows))
        result = (x.take(first, axis=place), numbers.astype(dtype))
        return (*result, counts.astype(dtype)) if counted else result

    return run


@kernel("ListDiff")
def list_diff(node: Construction) -> Kernel:
    """The elements of x that are not in y, and their indices in x."""
    dtype = numpy_dtype(node.output_types[1])

    def run(x: Array, y: Array) -> tuple[Array, Array]:
        for name, values in (("x", x), ("y", y)):
            if values.ndim != 1:
                raise InvalidArgumentError(f"{name} should be a 1D vector.")
        known = set(y.tolist())
        kept = np.array([i for i, value in enumerate(x.tolist()) if value not in known], np.int64)
        return x[kept], kept.astype(dtype)

    return run
