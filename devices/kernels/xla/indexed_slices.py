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
from ..checks import require
from ..registry import Construction, Kernel, kernel


@kernel("XlaGather")
def gather(node: Construction) -> Kernel:
    """One slice of the operand for each start index."""
    numbers = gather_numbers(node.attrs["dimension_numbers"])

    @lru_cache(maxsize=16)
    def offsets_of(sizes: tuple[int, ...], index_rank: int) -> list[Array]:
        return within_slices(numbers, sizes, index_rank)

    def take(x: Array, starts: Array, sizes: Array) -> Array:
        wanted = tuple(sizes.tolist())
        fits = len(wanted) == x.ndim and all(0 <= part <= whole for part, whole in zip(wanted, x.shape, strict=True))
        require(fits, f"slice sizes {shape_text(wanted)} do not fit an operand of shape {shape_text(x.shape)}")
        places = offsets_of(wanted, index_rank(numbers, starts))
        return np.asarray(x[tuple(places_of_slices(numbers, x.shape, wanted, starts, places))])

    return take


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
        places[own] = np.arange(shape[own]).reshape([shape[own] if i == axis else 1 for i in range(rank)])
    return places
