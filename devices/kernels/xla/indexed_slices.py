"""Slices of an array at start indices: where their elements are, and gathers of them.

A gather moves a start that would leave the operand to the nearest one that does not; a scatter leaves its slice out.

    operand [4, 3], slices of sizes [1, 3] at rows [2, 0]    places: rows [[2], [0]], columns [[0, 1, 2]]
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.xla.dimension_numbers import GatherNumbers, gather_numbers
from ..checks import require, vector_of
from ..registry import Construction, Kernel, kernel


@kernel("XlaGather")
def gather(node: Construction) -> Kernel:
    """One slice of the operand for each start index."""
    numbers = gather_numbers(node.attrs["dimension_numbers"])

    @lru_cache(maxsize=16)
    def offsets_of(sizes: tuple[int, ...], index_rank: int) -> list[Array]:
        return within_slices(numbers, sizes, index_rank)

    def take(x: Array, starts: Array, sizes: Array) -> Array:
        wanted = tuple(vector_of(sizes, "slice_sizes"))
        fits = len(wanted) == x.ndim and all(0 <= part <= whole for part, whole in zip(wanted, x.shape, strict=True))
        require(fits, f"slice sizes {shape_text(wanted)} do not fit an operand of shape {shape_text(x.shape)}")
        check_axes(numbers, starts.shape, len(wanted))
        is_one = all(wanted[axis] == 1 for axis in numbers.collapsed + numbers.operand_batch)
        require(is_one, f"slice sizes {shape_text(wanted)} must be 1 along the axes that the result lacks")
        places = offsets_of(wanted, index_rank(numbers, starts))
        return np.asarray(x[tuple(places_of_slices(numbers, x.shape, wanted, starts, places))])

    return take


def check_axes(numbers: GatherNumbers, starts: tuple[int, ...], rank: int) -> None:
    """InvalidArgumentError unless the roles of axes fit start indices of that shape and an operand of that rank."""
    outer = len(starts) - (numbers.vector_axis < len(starts))
    require(numbers.vector_axis <= len(starts), f"start indices {shape_text(starts)} lack axis {numbers.vector_axis}")
    components = starts[numbers.vector_axis] if numbers.vector_axis < len(starts) else 1
    require(
        components == len(numbers.start_map),
        f"a start index has {components} numbers along axis {numbers.vector_axis} of {shape_text(starts)}, not "
        f"{len(numbers.start_map)}",
    )
    for axes, limit, what in (
        (numbers.offset, outer + len(numbers.offset), "result"),
        (numbers.collapsed + numbers.operand_batch, rank, "operand"),
        (numbers.start_map + numbers.operand_batch, rank, "operand"),
        ((*numbers.index_batch, numbers.vector_axis), len(starts) + 1, "start indices"),
    ):
        is_fitting = len({*axes}) == len(axes) and all(axis < limit for axis in axes)
        require(is_fitting, f"axes {shape_text(axes)} are not different ones of a {what} of rank {limit}")
    dropped = len(numbers.collapsed) + len(numbers.operand_batch)
    require(len(numbers.offset) + dropped == rank, f"an operand of rank {rank} has {rank - dropped} axes of slices")
    require(len(numbers.operand_batch) == len(numbers.index_batch), "operand and indices have other batch axes")


def index_rank(numbers: GatherNumbers, starts: Array) -> int:
    """The number of axes along which different start indices lie."""
    return starts.ndim - (numbers.vector_axis < starts.ndim)


def within_slices(numbers: GatherNumbers, sizes: tuple[int, ...], index_rank: int) -> list[Array]:
    """For each axis of the operand the places within a slice, laid along the result's axis for it."""
    kept = [axis for axis in range(len(sizes)) if axis not in numbers.collapsed + numbers.operand_batch]
    rank = len(kept) + index_rank
    along = dict(zip(kept, numbers.offset, strict=True))
    return [
        np.arange(size).reshape([size if axis == along.get(own, -1) else 1 for axis in range(rank)])
        for own, size in enumerate(sizes)
    ]


def _first_places(numbers: GatherNumbers, starts: Array, rank: int) -> dict[int, Array]:
    """The start indices as stated, by the axis of the operand that they are for, laid along the axes of the result."""
    vectors = starts[..., None] if numbers.vector_axis == starts.ndim else np.moveaxis(starts, numbers.vector_axis, -1)
    grid = [1] * rank
    for axis, size in zip(_outer_axes(numbers, rank), vectors.shape[:-1], strict=True):
        grid[axis] = size
    return {
        own: vectors[..., component].astype(np.int64).reshape(grid) for component, own in enumerate(numbers.start_map)
    }


def _outer_axes(numbers: GatherNumbers, rank: int) -> list[int]:
    """The axes of the result that are those of the start indices."""
    return [axis for axis in range(rank) if axis not in numbers.offset]


def are_inside(
    numbers: GatherNumbers, shape: tuple[int, ...], sizes: tuple[int, ...], starts: Array, rank: int
) -> Array:
    """Whether the slice of each element of a result of that rank lies in the operand, with sizes of 1 where it is open.

    `rank` is that of the result.
    """
    inside = np.ones([1] * rank, bool)
    for own, first in _first_places(numbers, starts, rank).items():
        inside = inside & (first >= 0) & (first <= shape[own] - sizes[own])
    return inside


def places_of_slices(
    numbers: GatherNumbers, shape: tuple[int, ...], sizes: tuple[int, ...], starts: Array, offsets: list[Array]
) -> list[Array]:
    """The places in the operand, by its axes, of all elements of the result; `offsets` are those within slices."""
    rank = offsets[0].ndim if offsets else index_rank(numbers, starts)
    places = list(offsets)
    for own, first in _first_places(numbers, starts, rank).items():
        places[own] = places[own] + np.clip(first, 0, shape[own] - sizes[own])
    outer = _outer_axes(numbers, rank)
    for own, index_axis in zip(numbers.operand_batch, numbers.index_batch, strict=True):
        axis = outer[index_axis - (numbers.vector_axis < index_axis)]
        size = starts.shape[index_axis]
        batch = np.minimum(np.arange(size), shape[own] - 1)
        places[own] = batch.reshape([size if i == axis else 1 for i in range(rank)])
    return places
