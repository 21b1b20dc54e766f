"""Kernels on the rows of ragged tensors: gather some, fill empty ones, and list all values with their coordinates.

A ragged tensor is one vector of splits per ragged axis and the values: row i holds what is between splits[i] and
splits[i + 1], rows of the next level or values.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....errors import InternalError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..arrays.gather import check_indices
from ..arrays.indices import is_any_outside, rows_and_steps
from ..checks import require
from ..registry import Construction, Kernel, kernel, outputs
from .sparse_structure import sparse_fill_empty_rows


def verify_splits(splits: Array, count: int) -> None:
    """InvalidArgumentError unless the splits divide `count` values."""
    wrong = "Invalid ragged splits:"
    require(splits.ndim == 1, f"{wrong} ragged splits must be rank 1 but is rank {splits.ndim}")
    require(bool(splits.size), f"{wrong} ragged splits must have at least one splits, but is empty")
    require(splits[0] == 0, f"{wrong} first element of ragged splits  must be 0 but is {splits[0]}")
    for i in np.flatnonzero(splits[1:] < splits[:-1]).tolist()[:1]:
        raise InvalidArgumentError(
            f"{wrong} ragged splits must be monotonically increasing, but ragged_splits[{i + 1}]={splits[i + 1]} is "
            f"smaller than row_splits[{i}]={splits[i]}"
        )
    require(
        splits[-1] == count,
        f"{wrong} last element of ragged splits must be the number of ragged values({count}) but is {splits[-1]}",
    )


def ranges(starts: Array, lengths: Array) -> Array:
    """start, start + 1, ... of each length, one range after the other."""
    offsets: Array = (starts - (np.add.accumulate(lengths) - lengths)).repeat(lengths)
    return offsets + np.arange(len(offsets))


@kernel("RaggedFillEmptyRows")
def ragged_fill_empty_rows(node: Construction) -> Kernel:
    """Row numbers and values with a default in each empty row; flags of these rows; where the values went."""
    fill = sparse_fill_empty_rows(node)

    def run(rows: Array, values: Array, count: Array, default: Array) -> tuple[Array, Array, Array, Array]:
        for what, kind, rank, part in (
            ("value_rowids", "vector", 1, rows),
            ("values", "vector", 1, values),
            ("nrows", "scalar", 0, count),
        ):
            if np.ndim(part) != rank:
                raise InvalidArgumentError(f"{what} must be a {kind}, saw: {shape_text(np.shape(part))}")
        if len(values) != len(rows):
            raise InvalidArgumentError(
                f"The length of `values` ({len(values)}) must match the first dimension of "
                f"`value_rowids` ({len(rows)})."
            )
        indices, filled, empty, places = fill(rows[:, None], values, np.reshape(count, (1,)), default)
        return indices[:, 0], filled, empty, places

    return run


def _check_nested(splits: Sequence[Array], values: Array) -> None:
    counts = [len(inner) - 1 for inner in splits[1:]] + [values.shape[0] if values.ndim else -1]
    for outer, count in zip(splits, counts, strict=True):
        require(bool(outer.size), "ragged splits may not be empty.")
        require(outer[0] == 0, "First value of ragged splits must be 0.")
        for i in (outer[1:] < outer[:-1]).nonzero()[0].tolist()[:1]:
            raise InvalidArgumentError(
                f"Ragged splits should be non decreasing, but we got {outer[i]} followed by {outer[i + 1]}"
            )
        message = "Final value of ragged splits must match the length the corresponding ragged values."
        require(outer[-1] == count, message)


@kernel("RaggedTensorToSparse")
def ragged_tensor_to_sparse(node: Construction) -> Kernel:
    """The sparse tensor of all values; axes behind the ragged ones are axes of it too."""

    def run(*inputs: Array) -> tuple[Array, Array, Array]:
        splits, values = [each.reshape(-1) for each in inputs[:-1]], inputs[-1]
        _check_nested(splits, values)
        places, sizes = np.arange(len(splits[0]) - 1)[:, None], [len(splits[0]) - 1]
        for level in splits:
            lengths = (level[1:] - level[:-1]).astype(np.int64, copy=False)
            rows, within = rows_and_steps(lengths)
            places = np.concatenate([places.take(rows, 0), within[:, None]], 1)
            sizes.append(int(np.maximum.reduce(lengths, initial=0)))
        inner = values.shape[1:]
        indices = places
        if inner:
            cells = np.indices(inner).reshape(len(inner), prod(inner)).T
            indices = np.concatenate([places.repeat(len(cells), 0), np.tile(cells, (len(places), 1))], 1)
        return indices.astype(np.int64, copy=False), values.reshape(-1), np.array([*sizes, *inner], np.int64)

    return run


def _gathered(splits: Sequence[Array], rows: Array) -> tuple[list[Array], Array]:
    """The splits of these rows at every level, and the positions of their values."""
    result: list[Array] = []
    for level in splits:
        starts, limits = level[rows].astype(np.int64), level[rows + 1].astype(np.int64)
        require(bool(np.logical_and.reduce(starts <= limits)), "Ragged splits must be sorted")
        lengths = limits - starts
        result.append(np.concatenate([[0], np.add.accumulate(lengths)]).astype(level.dtype))
        rows = ranges(starts, lengths)
    return result, rows


def _check_splits(splits: Sequence[Array], count: int) -> None:
    for level, limit in zip(splits, [len(inner) - 1 for inner in splits[1:]] + [count], strict=True):
        require(not is_any_outside(level, limit + 1), "Ragged splits must not point past values")


@kernel("RaggedGather")
def ragged_gather(node: Construction) -> Kernel:
    """The rows that the indices name, in the shape of the indices; axes behind the first one become ragged."""
    rank, split_type = node.attrs["PARAMS_RAGGED_RANK"], numpy_dtype(node.attrs["Tsplits"])

    def run(*inputs: Array) -> Any:  # splits and values
        splits, values, indices = inputs[:rank], inputs[rank], np.asarray(inputs[rank + 1])
        require(all(each.ndim for each in splits), "Split tensors must not be scalars")
        require(values.ndim > 0, "params.rank must be nonzero")
        ragged = node.attrs["OUTPUT_RAGGED_RANK"]
        if rank + indices.ndim - 1 != ragged:
            raise InternalError(
                f"indices of rank {indices.ndim} make a result of ragged rank {rank + indices.ndim - 1}, where attr "
                f"OUTPUT_RAGGED_RANK says {ragged}"
            )
        check_indices(indices, len(splits[0]) - 1)
        _check_splits(splits, len(values))
        levels, places = _gathered(splits, indices.reshape(-1).astype(np.int64))
        outer = [
            np.arange(0, int(np.prod(indices.shape[: axis + 1])) + 1, max(indices.shape[axis], 1), dtype=split_type)
            if indices.shape[axis]
            else np.zeros(int(np.prod(indices.shape[:axis])) + 1, split_type)
            for axis in range(1, indices.ndim)
        ]
        return outputs([*outer, *(levels if indices.ndim else levels[1:]), values[places]])

    return run
