"""Kernels of RaggedRange and RaggedTensorToTensor; rows longer than the requested size are cut."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
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

    def run(*bounds: Array) -> tuple[Array, Array]:
        for name, bound in zip(("starts", "limits", "deltas"), bounds, strict=True):
            require(np.ndim(bound) <= 1, f"{name} must be a scalar or vector")
        lengths = {bound.shape[0] for bound in bounds if np.ndim(bound)}
        require(len(lengths) <= 1, "starts, limits, and deltas must have the same shape")
        rows = list(
            zip(*(np.broadcast_to(b, lengths.copy().pop() if lengths else 1).tolist() for b in bounds), strict=True)
        )
        sizes = [_range_size(*row) for row in rows]
        output_shape((sum(sizes),), dtype)
        parts = [start + delta * np.arange(size) for (start, _, delta), size in zip(rows, sizes, strict=True)]
        values = np.concatenate(parts) if parts else np.zeros(0)
        return np.cumsum([0, *sizes]).astype(splits_type), values.astype(dtype)

    return run


def _row_lengths(kind: bytes, partition: Array, rows: int | None) -> list[int]:
    """The length of every row of one partition; `rows` is their number where the partition does not give it."""
    if kind == b"ROW_SPLITS":
        rises = bool((partition[1:] >= partition[:-1]).all())  # a difference may overflow
        require(rises and (not partition.size or partition[0] == 0), "Invalid row split size.")
        result: list[int] = np.diff(partition).tolist()
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


def _places(lengths: list[list[int]], sizes: list[int]) -> Array:
    """The index of each value, one row per value; indices outside of `sizes` are marked by -1."""
    places = np.arange(len(lengths[0]))[:, None]
    for level in lengths:
        rows = np.repeat(places[: len(level)], level[: len(places)], axis=0)
        within = np.concatenate([np.arange(n) for n in level]) if level else np.zeros(0, np.int64)
        places = np.concatenate([rows, within[: len(rows), None]], axis=1)
    outside = np.greater_equal(places, sizes).any(axis=1, keepdims=True)
    return np.where(outside, -1, places).astype(np.int64)


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
        places = _places(lengths, sizes[:depth])[: len(values)]
        inside = places[:, 0] >= 0
        result[tuple(places[inside].T)] = values[: len(places)][inside]
        return result

    return run
