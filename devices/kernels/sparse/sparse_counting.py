"""Kernels that count how often each value occurs in the rows of a dense, sparse or ragged tensor.

rows [1 1 4] [] [2]      dense, 4 bins    [[0 2 0 0] [0 0 0 0] [0 0 1 0]]      (the 4 has no bin)
                         sparse           indices [0 1] [0 4] [2 2], values 2 1 1, shape [3 5]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..arrays.gather import bad_tuples
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .sparse import check_sparse

ValueRows = tuple[Array, int]
"""the row of each value, and the number of rows"""


def _ragged_rows(splits: Array, count: int) -> ValueRows:
    splits = splits.reshape(-1)
    require(splits[0] == 0, f"Splits must start with 0, not with {splits[0]}")
    require(splits[-1] == count, f"Splits must end with the number of values, got {splits[-1]} instead of {count}")
    ends = np.maximum.accumulate(splits)
    return np.searchsorted(ends, np.arange(count), "right") - 1, len(splits) - 1


def _check_weights(weights: Array, values: Array, what: str) -> None:
    if not (not weights.size or weights.shape == values.shape):
        raise InvalidArgumentError(
            f"Weights and {what} must have the same shape. Weight shape: {shape_text(weights.shape)}; {what} shape: "
            f"{shape_text(values.shape)}"
        )


class _Counter:
    """What the attrs of the ops with sparse outputs ask for."""

    def __init__(self, node: Construction) -> None:
        self._least: int = node.attrs["minlength"]
        self._most: int = node.attrs["maxlength"]
        self._binary: bool = node.attrs["binary_output"]
        self._dtype = numpy_dtype(node.output_types[1])

    def count(self, values: Array, weights: Array, rows: ValueRows | None) -> tuple[Array, Array, Array]:
        """Indices, counts (or sums of weights) and shape; without `rows` all values are one row, without an axis."""
        require(not values.size or bool(values.min() >= 0), "Input values must all be non-negative")
        largest = values.max(initial=0).astype(np.int64)
        width = max(self._least, int(largest + np.int64(1))) if self._most < 0 else self._most  # may wrap around
        inside = values < width
        row = np.zeros(len(values), np.int64) if rows is None else rows[0]
        pairs = np.stack([row[inside], values[inside].astype(np.int64)], axis=1)
        found, groups = np.unique(pairs, axis=0, return_inverse=True)
        counts = self._counts(len(found), groups.reshape(-1), weights.reshape(-1)[inside] if weights.size else None)
        if rows is None:
            return found[:, 1:], counts, np.array([width], np.int64)
        return found, counts, np.array([rows[1], width], np.int64)

    def _counts(self, size: int, groups: Array, weights: Array | None) -> Array:
        if self._binary:
            return np.ones(size, self._dtype)
        if weights is None:
            return np.bincount(groups, minlength=size).astype(self._dtype)
        sums = np.zeros(size, self._dtype)
        np.add.at(sums, groups, weights)
        return sums


@kernel("DenseCountSparseOutput")
def dense_count(node: Construction) -> Kernel:
    """Of a vector, or of each row of a matrix."""
    counter = _Counter(node)

    def run(values: Array, weights: Array) -> tuple[Array, Array, Array]:
        shape = np.shape(values)
        if len(shape) not in (1, 2):
            raise InvalidArgumentError(f"Input must be a 1 or 2-dimensional tensor. Got: {shape_text(shape)}")
        _check_weights(weights, values, "data")
        rows = (np.repeat(np.arange(shape[0]), shape[1]), shape[0]) if len(shape) == 2 else None
        return counter.count(values.reshape(-1), weights, rows)

    return run


def _check_sparse(indices: Array, values: Array, shape: Array) -> None:
    require(bool(shape.size), "The shape argument requires at least one element.")
    if indices.ndim != 2:
        raise InvalidArgumentError(f"Input indices must be a 2-dimensional tensor. Got: {shape_text(indices.shape)}")
    if values.ndim != 1:
        raise InvalidArgumentError(f"Input values must be a vector. Got: {shape_text(values.shape)}")
    if shape.ndim != 1:
        raise InvalidArgumentError(f"Input shape must be a vector. Got: {shape_text(shape.shape)}")
    if len(values) != len(indices):
        raise InvalidArgumentError(
            f"Number of values must match first dimension of indices.Got {len(values)} values, indices shape: "
            f"{shape_text(indices.shape)}"
        )
    if shape.size != indices.shape[1]:
        raise InvalidArgumentError(
            f"Number of dimensions must match second dimension of indices.Got {shape.size} dimensions, indices shape: "
            f"{shape_text(indices.shape)}"
        )
    sizes = shape.tolist()
    if min(sizes) < 0:
        raise InvalidArgumentError(f"Input shape must not be negative. Got: {shape_text(tuple(sizes))}")
    for row in np.flatnonzero(bad_tuples(indices, tuple(sizes))).tolist()[:1]:
        axis = next(k for k, at in enumerate(indices[row].tolist()) if not 0 <= at < sizes[k])
        values_text = " ".join(map(str, sizes[:3])) + ("..." if len(sizes) > 3 else "")
        raise InvalidArgumentError(
            f"Invalid index value at {row}: dimension {axis} has value {indices[row, axis]} which is not in "
            f"[0, {sizes[axis]}) (as given by dense shape Tensor<type: int64 shape: [{len(sizes)}] values: "
            f"{values_text}>"
        )


@kernel("SparseCountSparseOutput")
def sparse_count(node: Construction) -> Kernel:
    """Of a sparse vector, or of all that a sparse tensor has under each first coordinate."""
    counter = _Counter(node)

    def run(indices: Array, values: Array, shape: Array, weights: Array) -> tuple[Array, Array, Array]:
        _check_weights(weights, values, "values")
        _check_sparse(indices, values, shape)
        return counter.count(values, weights, None if shape.size == 1 else (indices[:, 0], int(shape[0])))

    return run


@kernel("RaggedCountSparseOutput")
def ragged_count(node: Construction) -> Kernel:
    """Of each row of a ragged tensor."""
    counter = _Counter(node)

    def run(splits: Array, values: Array, weights: Array) -> tuple[Array, Array, Array]:
        _check_weights(weights, values, "values")
        require(splits.size >= 2, "Must provide at least 2 elements for the splits argument")
        return counter.count(values.reshape(-1), weights, _ragged_rows(splits, values.size))

    return run


def _bins(size: Array) -> int:
    if np.ndim(size) != 0:
        raise InvalidArgumentError(f"Shape must be rank 0 but is rank {np.ndim(size)}")
    bins = int(size)
    require(bins >= 0, f"size ({bins}) must be non-negative")
    return bins


def _binned(values: Array, rows: ValueRows, bins: int, weights: Array, binary: bool, dtype: np.dtype[Any]) -> Array:
    """[rows, bins]: counts, sums of weights, or whether a value occurs; values without a bin are left out."""
    if weights.size and weights.shape != values.shape:
        raise InvalidArgumentError(
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights "
            f"equal to 1. Received {shape_text(weights.shape)}"
        )
    values = values.reshape(-1)
    inside = (values < bins) & (values >= 0)
    result = np.zeros(output_shape((rows[1], bins), dtype), dtype)
    at = rows[0][inside], values[inside]
    if binary:
        result[at] = 1
    else:
        np.add.at(result, at, weights.reshape(-1)[inside] if weights.size else np.ones((), dtype))
    return result


@kernel("RaggedBincount")
def ragged_bincount(node: Construction) -> Kernel:
    """The bins of each row."""
    binary, dtype = node.attrs["binary_output"], numpy_dtype(node.output_types[0])

    def run(splits: Array, values: Array, size: Array, weights: Array) -> Array:
        bins = _bins(size)
        require(bool(splits.size), "Splits must be non-empty")
        rows = _ragged_rows(splits, values.size)
        require(not values.size or bool(values.min() >= 0), "Input must be non-negative")
        return _binned(values, rows, bins, weights, binary, dtype)

    return run


@kernel("SparseBincount")
def sparse_bincount(node: Construction) -> Kernel:
    """The bins of a sparse vector, or of each first coordinate of a sparse tensor."""
    binary, dtype = node.attrs["binary_output"], numpy_dtype(node.output_types[0])

    def run(indices: Array, values: Array, shape: Array, size: Array, weights: Array) -> Array:
        bins = _bins(size)
        check_sparse(indices, values, shape)
        for row in np.flatnonzero(bad_tuples(indices, tuple(shape.tolist()))).tolist()[:1]:
            place = ", ".join(map(str, indices[row].tolist()))
            raise InvalidArgumentError(f"Sparse index tuple indices[{row}, :] = [{place}] is out of bounds")
        if shape.size <= 1:
            result = _binned(values, (np.zeros(len(values), np.int64), 1), bins, weights, binary, dtype)
            first: Array = result[0]
            return first
        return _binned(values, (indices[:, 0], int(shape[0])), bins, weights, binary, dtype)

    return run
