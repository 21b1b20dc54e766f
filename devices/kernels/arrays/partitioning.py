"""Kernels that distribute slices over tensors (DynamicPartition) and put them together again (DynamicStitch)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..registry import Construction, Kernel, kernel, outputs
from .gather import check_indices
from .indices import is_any_outside
from .slicing import empty_of


@kernel("DynamicPartition")
def dynamic_partition(node: Construction) -> Kernel:
    """For each number below `num_partitions` the slices with that number, in their order."""
    count = node.attrs["num_partitions"]

    def run(data: Array, partitions: Array) -> object:
        rank = partitions.ndim
        if data.shape[:rank] != partitions.shape:
            raise InvalidArgumentError(
                "data.shape must start with partitions.shape, got data.shape = "
                f"{shape_text(data.shape)}, partitions.shape = {shape_text(partitions.shape)}"
            )
        check_indices(partitions, count, "partitions")
        marks = partitions.reshape(-1)
        slices = data.reshape(marks.size, *data.shape[rank:])
        return outputs([slices[marks == number] for number in range(count)])

    return run


def _check_stitch(indices: Sequence[Array], data: Sequence[Array]) -> None:
    first = data[0].shape[indices[0].ndim :]
    for i, (places, x) in enumerate(zip(indices, data, strict=True)):
        if x.shape[: places.ndim] != places.shape:
            raise InvalidArgumentError(
                f"data[{i}].shape = {shape_text(x.shape)} does not start with "
                f"indices[{i}].shape = {shape_text(places.shape)}"
            )
        if x.shape[places.ndim :] != first:
            raise InvalidArgumentError(
                f"Need data[0].shape[{indices[0].ndim}:] = data[{i}].shape[{places.ndim}:], got data[0].shape = "
                f"{shape_text(data[0].shape)}, data[{i}].shape = {shape_text(x.shape)}, indices[0].shape = "
                f"{shape_text(indices[0].shape)}, indices[{i}].shape = {shape_text(places.shape)}"
            )


def _refuse_negative(indices: Sequence[Array]) -> None:
    """InvalidArgumentError for the first negative index, by its place among those of its tensor."""
    flat = next(places.reshape(-1) for places in indices if (places < 0).any())
    raise InvalidArgumentError(f"indices[{int(np.flatnonzero(flat < 0)[0])}] is out of range")


@kernel("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(node: Construction) -> Kernel:
    """A tensor with each slice at its index; of several with one index the last counts, missing indices give zeros."""
    count = node.attrs["N"]

    def run(*inputs: Array) -> Array:
        indices, data = inputs[:count], inputs[count:]
        _check_stitch(indices, data)
        flat = indices[0].reshape(-1) if count == 1 else np.concatenate([places.reshape(-1) for places in indices])
        inner = data[0].shape[indices[0].ndim :]
        rows = max(int(np.maximum.reduce(flat, initial=-1)) + 1, 0)
        if is_any_outside(flat, rows):
            _refuse_negative(indices)
        result = empty_of((rows, *inner), data[0].dtype)
        for places, x in zip(indices, data, strict=True):
            result[places] = x
        return result

    return run
