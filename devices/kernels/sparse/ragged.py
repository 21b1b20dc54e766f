"""Kernels of RaggedRange and RaggedTensorToTensor; rows longer than the requested size are cut."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..arrays.indices import rows_and_steps
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel


def _range_size(start: Any, limit: Any, delta: Any) -> int:  # Python numbers
    require(delta != 0, "Requires delta != 0")
    if (delta > 0 and start >= limit) or (delta < 0 and start <= limit):
        return 0
    if isinstance(delta, int):
        return int(-((start - limit) // delta))
    size = np.ceil(abs((limit - start) / delta))
    require(bool(size <= 2**63 - 1), f"Requires ((limit - start) / delta) <= {2**63 - 1}")
    return int(size)


@kernel("RaggedRange")
def ragged_range(node: Construction) -> Kernel:
    """Row splits and values of the ranges; scalars apply to all of them."""
    splits_type, dtype = map(numpy_dtype, node.output_types)
    wide = np.int64 if dtype.kind == "i" else np.float64

    def run(*bounds: Array) -> tuple[Array, Array]:
        for name, bound in zip(("starts", "limits", "deltas"), bounds, strict=True):
            require(np.ndim(bound) <= 1, f"{name} must be a scalar or vector")
        lengths = {bound.shape[0] for bound in bounds if np.ndim(bound)}
        require(len(lengths) <= 1, "starts, limits, and deltas must have the same shape")
        count = lengths.pop() if lengths else 1
        starts, limits, deltas = (b.tolist() if b.ndim else [b.item()] * count for b in bounds)
        sizes = [_range_size(*row) for row in zip(starts, limits, deltas, strict=True)]
        splits = [*accumulate(sizes, initial=0)]
        output_shape((splits[-1],), dtype)
        rows, within = rows_and_steps(np.array(sizes, np.int64))
        values = np.array(starts, wide)[rows] + np.array(deltas, wide)[rows] * within
        return np.array(splits, np.int64).astype(splits_type), values.astype(dtype)

    return run


def _row_lengths(kind: bytes, partition: Array, rows: int | None) -> list[int]:
    """The length of every row of one partition; `rows` is their number where the partition does not give it."""
    if kind == b"ROW_SPLITS":
        ends, begins = partition[1:], partition[:-1]
        rises = bool(np.logical_and.reduce(ends >= begins))  # a difference may overflow
        require(rises and (not partition.size or partition[0] == 0), "Invalid row split size.")
        result: list[int] = (ends - begins).tolist()
        output_shape((sum(result),), partition.dtype)
        return result
    if kind != b"VALUE_ROWIDS":
        raise InvalidArgumentError(f"Unsupported row partition type {kind.decode()}")
    ids = partition.tolist()
    count = rows if rows is not None else (ids[-1] + 1 if ids else 0)
    require(count >= 0 and all(0 <= i < count for i in ids), "Invalid index in value_rowids.")
    output_shape((count,), partition.dtype)
    lengths_by_id: list[int] = np.bincount(partition.astype(np.int64), minlength=count).tolist()
    return lengths_by_id


def _places(lengths: list[list[int]], sizes: list[int]) -> tuple[Array, Array]:
    """The position of each value in a dense tensor of `sizes`, and whether it is inside."""
    places = np.arange(len(lengths[0]))
    is_inside = places < sizes[0]
    for level, size in zip(lengths, sizes[1:], strict=True):
        rows, within = rows_and_steps(np.array(level[: len(places)], np.int64))
        places = places[rows] * size + within
        is_inside = is_inside[rows] & (within < size)
    return places, is_inside


def _check_default(default: tuple[int, ...], values: tuple[int, ...]) -> None:
    """InvalidArgumentError unless the default broadcasts to one value."""
    what = (
        f"default_value.shape={shape_text(default)} and rt_input.flat_values.shape={shape_text(values)} "
        "are incompatible: "
    )
    if len(default) >= len(values):
        raise InvalidArgumentError(
            f"{what}default_value.rank = {len(default)}  must be less than rt_input.flat_values.rank = {len(values)}"
        )
    for i in range(-len(default), 0):
        if default[i] not in (1, values[i]):
            raise InvalidArgumentError(
                f"{what}default_value.shape[{i}] = {default[i]} but rt_input.flat_values.shape[{i}] = {values[i]}"
            )


@kernel("RaggedTensorToTensor")
def ragged_tensor_to_tensor(node: Construction) -> Kernel:
    """Values at their indices in a dense tensor; a size of -1 is the length of the longest row."""
    kinds = node.attrs["row_partition_types"]
    flat_first = kinds[:1] == (b"FIRST_DIM_SIZE",)

    def sizes_of(shape: Array, rank: int, lengths: list[list[int]], inner: tuple[int, ...]) -> list[int]:
        if np.ndim(shape) > 1:
            raise InvalidArgumentError(f"Shape must be at most rank 1 but is rank {np.ndim(shape)}")
        requested = [-1] * rank if np.ndim(shape) == 0 else shape.tolist()
        if len(requested) != rank:
            text = ",".join("?" if size < 0 else str(size) for size in requested)
            raise InvalidArgumentError(
                f"rt_input.shape and shape=[{text}] are incompatible: "
                f"rt_input.rank = {rank} but shape.rank = {len(requested)}"
            )
        natural = [len(lengths[0]), *(max(level, default=0) for level in lengths), *inner]
        return [n if size < 0 else size for size, n in zip(requested, natural, strict=True)]

    def run(shape: Array, values: Array, default: Array, *partitions: Array) -> Array:
        partitions = tuple(np.reshape(partition, -1) for partition in partitions)
        if flat_first:
            message = "Invalid first partition input. Tensor requires at least one element."
            require(partitions[0].size > 0, message)
        rows = int(partitions[0][0]) if flat_first else None
        lengths: list[list[int]] = []
        for kind, partition in list(zip(kinds, partitions, strict=True))[flat_first:]:
            lengths.append(_row_lengths(kind, partition, rows))
            rows = sum(lengths[-1])
        inner = values.shape[1:]
        _check_default(default.shape, values.shape)
        sizes = sizes_of(shape, len(lengths) + 1 + len(inner), lengths, inner)
        depth = len(lengths) + 1
        require(tuple(sizes[depth:]) == inner, f"the inner sizes {sizes[depth:]} are not those of the values, {inner}")
        result = np.empty(output_shape(sizes, values.dtype), values.dtype)
        result[...] = default
        places, is_inside = _places(lengths, sizes[:depth])
        places, is_inside, values = places[: len(values)], is_inside[: len(values)], values[: len(places)]
        if not np.logical_and.reduce(is_inside):
            places, values = places[is_inside], values[is_inside]
        result.reshape(prod(sizes[:depth]), *inner)[places] = values
        return result

    return run
