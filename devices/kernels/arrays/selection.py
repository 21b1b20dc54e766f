"""Kernels that rank elements: TopK, NthElement, LowerBound and UpperBound, InTopK.

Of equal elements the one with the lower index comes first.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .gather import row_starts

_WIDE, _SHARE = 512, 8  # wide rows of which one element in eight or fewer is asked for are cut down to candidates first


def _descending(x: Array) -> Array:
    """Keys whose ascending order is the descending order of `x`: complements of integers, negated floats."""
    return np.invert(x) if x.dtype.kind in "iu" else np.negative(x)


def _top_row(keys: Array, k: int) -> Array:
    """The positions of the k smallest keys of one wide row, equal keys by position."""
    partitioned = keys.copy()
    partitioned.partition(k - 1)
    candidates: Array = (keys <= partitioned[k - 1]).nonzero()[0]
    return candidates[keys[candidates].argsort(kind="stable")[:k]]


def top_places(x: Array, k: int) -> Array:
    """The positions of the k largest elements of each row (last axis), largest first, equal ones by position."""
    if k == 1 and x.size:
        return x.argmax(axis=-1)[..., None] if x.ndim > 1 else np.array([x.argmax()])
    keys, width = _descending(x), x.shape[-1]
    if width >= _WIDE and 0 < k * _SHARE <= width and not (keys != keys).any():
        return np.array([_top_row(row, k) for row in keys.reshape(-1, width)], np.int64).reshape(*x.shape[:-1], k)
    return keys.argsort(axis=-1, kind="stable")[..., :k]


@kernel("TopK", "TopKV2")
def top_k(node: Construction) -> Kernel:
    """The k largest elements of each row, in descending order, and their positions."""
    fixed = int(node.attrs.get("k", 0))  # in TopKV2 and InTopKV2 k is an input
    places_type = numpy_dtype(node.output_types[1])

    def run(x: Array, *k_input: Array) -> tuple[Array, Array]:
        if k_input and k_input[0].ndim:
            raise InvalidArgumentError(f"k must be scalar, got shape {shape_text(k_input[0].shape)}")
        k = int(k_input[0]) if k_input else fixed
        if k < 0:
            raise InvalidArgumentError(f"Need k >= 0, got {k}")
        if x.ndim == 0:
            raise InvalidArgumentError(f"input must be >= 1-D, got shape {shape_text(x.shape)}")
        if x.shape[-1] < k:
            raise InvalidArgumentError(f"input must have at least k columns. Had {x.shape[-1]}, needed {k}")
        places = top_places(x, k)
        if x.ndim == 1:
            return x[places], places.astype(places_type)
        if x.ndim == 2:
            return x.reshape(-1).take(places + row_starts(*x.shape)), places.astype(places_type)
        return np.take_along_axis(x, places, axis=-1), places.astype(places_type)

    return run


@kernel("NthElement")
def nth_element(node: Construction) -> Kernel:
    """The n-th smallest (reverse: largest) element of each row, counted from zero."""
    largest = node.attrs["reverse"]

    def run(x: Array, n: Array) -> Array:
        if n.ndim:
            raise InvalidArgumentError(f"N must be scalar but has rank {n.ndim}")
        place = int(n)
        if place < 0:
            raise InvalidArgumentError(f"n must be non-negative but is {place}")
        if x.ndim == 0:
            raise InvalidArgumentError("Input must be at least rank 1 but is rank 0")
        if x.shape[-1] <= place:
            raise InvalidArgumentError(f"Input must have last dimension > n = {place}")
        if largest:
            place = x.shape[-1] - 1 - place
        return np.sort(x, axis=-1)[..., place]

    return run


def _bound(node: Construction, side: Literal["left", "right"]) -> Kernel:
    dtype = numpy_dtype(node.output_types[0])

    def run(rows: Array, values: Array) -> Array:
        for name, x in (("sorted_inputs", rows), ("values", values)):
            if x.ndim != 2:
                raise InvalidArgumentError(f"Shape must be rank 2 but is rank {x.ndim} for `{name}` argument")
        if rows.shape[0] != values.shape[0]:
            raise InvalidArgumentError("Leading dim_size of both tensors must match.")
        result = np.empty(values.shape, dtype)
        # numpy sorts NaN to the end, a binary search by "less" does not
        unordered = (rows != rows).any() or (values != values).any()
        for i, row in enumerate(rows):
            if unordered:
                result[i] = [_place(row, value, side) for value in values[i]]
            else:
                result[i] = row.searchsorted(values[i], side=side)
        return result

    return run


def _place(row: Array, value: Any, side: str) -> int:  # a number of any type
    """The result of a binary search that only asks whether one number is less than another."""
    low, high = 0, row.size
    while low < high:
        middle = (low + high) // 2
        if row[middle] < value if side == "left" else not value < row[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel("LowerBound")
def lower_bound(node: Construction) -> Kernel:
    """For each value the first index in its sorted row at which it could be inserted."""
    return _bound(node, "left")


@kernel("UpperBound")
def upper_bound(node: Construction) -> Kernel:
    """For each value the last index in its sorted row at which it could be inserted."""
    return _bound(node, "right")


@kernel("ApproxTopK")
def approx_top_k(node: Construction) -> Kernel:
    """As TopK, or the k smallest, along any axis; on a CPU TensorFlow finds them exactly too."""
    attrs = node.attrs
    k, axis, largest = int(attrs["k"]), int(attrs["reduction_dimension"]), bool(attrs["is_max_k"])
    if not attrs["aggregate_to_topk"]:
        raise UnimplementedError("ApproxTopK without aggregation exists on TPUs only")

    def run(x: Array) -> tuple[Array, Array]:
        require(x.ndim > 0, "input must be >= 1-D, got shape []")
        require(-x.ndim <= axis < x.ndim, f"reduction_dimension {axis} is no axis of an input of rank {x.ndim}")
        rows = np.moveaxis(x, axis, -1)
        if rows.shape[-1] < k:
            raise InvalidArgumentError(f"input must have last dimension >= k = {k} but was {rows.shape[-1]}")
        places = top_places(rows if largest else -rows, k)
        chosen = np.take_along_axis(rows, places, axis=-1)
        return np.moveaxis(chosen, -1, axis), np.moveaxis(places, -1, axis).astype(np.int32)

    return run


@kernel("InTopK", "InTopKV2")
def in_top_k(node: Construction) -> Kernel:
    """Whether fewer than k predictions of a row exceed that of its target; False if the row has a non-finite number."""
    fixed = int(node.attrs.get("k", 0))  # in TopKV2 and InTopKV2 k is an input

    def run(predictions: Array, targets: Array, *k_input: Array) -> Array:
        if k_input and k_input[0].ndim:
            raise InvalidArgumentError(f"k must be 0-D, got shape {shape_text(k_input[0].shape)}")
        k = int(k_input[0]) if k_input else fixed
        if predictions.ndim != 2:
            raise InvalidArgumentError("predictions must be 2-dimensional")
        if targets.ndim != 1:
            raise InvalidArgumentError("targets must be 1-dimensional")
        rows, classes = predictions.shape
        if rows != targets.size:
            raise InvalidArgumentError(
                f"First dimension of predictions {rows} must match length of targets {targets.size}"
            )
        inside = (targets >= 0) & (targets < classes)
        if not classes:
            return np.zeros(rows, np.bool_)
        places = row_starts(rows, classes) + np.where(inside, targets, 0)[:, None]
        finite = np.logical_and.reduce(np.isfinite(predictions), 1)
        better = np.add.reduce(predictions > predictions.reshape(-1).take(places), 1, np.intp)
        result: Array = inside & finite & (better < k)
        return result

    return run
