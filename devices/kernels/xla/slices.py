"""Slices at a computed place, cells added around and between others, and gathers of slices.

A start that would leave the array is moved to the nearest one that does not, as XLA defines it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.arrays.strided import IndexEntry
from ....graph.ops.xla.dimension_numbers import GatherNumbers, gather_numbers
from ....graph.ops.xla.xla_shapes import padded_size
from ..checks import require
from ..registry import Construction, Kernel, kernel, simple


def _place(shape: tuple[int, ...], starts: Array, sizes: tuple[int, ...]) -> tuple[IndexEntry, ...]:
    """The slices of those sizes that begin at `starts`, or as near as possible."""
    limits = [whole - part for whole, part in zip(shape, sizes, strict=True)]
    firsts = [min(max(start, 0), limit) for start, limit in zip(starts.tolist(), limits, strict=True)]
    return (*(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True)), ...)


def dynamic_slice(x: Array, starts: Array, sizes: Array) -> Array:
    """`sizes` elements from `starts` on along each axis."""
    require(
        starts.ndim == 1 and len(starts) == x.ndim,
        f"start_indices must be a vector with length equal to input rank, but input rank is {x.ndim} and "
        f"start_indices has shape {shape_text(starts.shape)}",
    )
    require(
        sizes.ndim == 1 and len(sizes) == x.ndim,
        f"size_indices must be a vector with length equal to input rank, but input rank is {x.ndim} and "
        f"size_indices has shape {shape_text(sizes.shape)}",
    )
    wanted = tuple(sizes.tolist())
    fits = all(0 <= part <= whole for part, whole in zip(wanted, x.shape, strict=True))
    require(fits, f"slice sizes {shape_text(wanted)} do not fit an array of shape {shape_text(x.shape)}")
    return np.asarray(x[_place(x.shape, starts, wanted)])


def dynamic_update_slice(x: Array, update: Array, starts: Array) -> Array:
    """`x` with `update` in place of as many elements from `starts` on."""
    require(
        starts.ndim == 1 and len(starts) == x.ndim,
        f"index must be a vector with length equal to the number of input dimensions, but input rank is {x.ndim} and "
        f"index has shape {shape_text(starts.shape)}",
    )
    fits = update.ndim == x.ndim and all(part <= whole for part, whole in zip(update.shape, x.shape, strict=True))
    require(
        fits,
        f"Input and update must have the same rank and no update may be larger: input shape is {shape_text(x.shape)}; "
        f"update shape is {shape_text(update.shape)}",
    )
    result = np.array(x)
    result[_place(x.shape, starts, update.shape)] = update
    return result


def pad(x: Array, value: Array, low: Array, high: Array, interior: Array) -> Array:
    """Each axis with `low` and `high` cells added at its ends, dropped if negative, and `interior` between each two."""
    require(value.ndim == 0, f"padding_value input must be scalar, found rank {value.ndim}")
    for widths, name in ((low, "low"), (high, "high"), (interior, "interior")):
        require(widths.shape == (x.ndim,), f"padding_{name} must be a 1D tensor of size {x.ndim}")
    require(bool((interior >= 0).all()), "padding_interior must be non-negative")
    axes = list(zip(x.shape, low.tolist(), high.tolist(), interior.tolist(), strict=True))
    result = np.full([padded_size(*axis) for axis in axes], value, x.dtype)
    target: list[IndexEntry] = []
    source: list[IndexEntry] = []
    for (size, before, _, between), whole in zip(axes, result.shape, strict=True):
        step = between + 1
        first, last = max(0, -(before // step)), min(size, -((before - whole) // step))
        last = max(first, last)
        source.append(slice(first, last))
        target.append(slice(before + first * step, before + max(last - 1, first) * step + (last > first), step))
    result[(*target, ...)] = x[(*source, ...)]
    return result


simple("XlaDynamicSlice", dynamic_slice)
simple("XlaDynamicUpdateSlice", dynamic_update_slice)
simple("XlaPad", pad)


@kernel("XlaGather")
def gather(node: Construction) -> Kernel:
    """One slice of the operand for each start index."""
    numbers = gather_numbers(node.attrs["dimension_numbers"])

    @lru_cache(maxsize=16)
    def offsets_of(sizes: tuple[int, ...], index_rank: int) -> list[Array]:
        return _offsets(numbers, sizes, index_rank)

    def take(x: Array, starts: Array, sizes: Array) -> Array:
        wanted = tuple(sizes.tolist())
        fits = len(wanted) == x.ndim and all(0 <= part <= whole for part, whole in zip(wanted, x.shape, strict=True))
        require(fits, f"slice sizes {shape_text(wanted)} do not fit an operand of shape {shape_text(x.shape)}")
        index_rank = starts.ndim if numbers.vector_axis == starts.ndim else starts.ndim - 1
        places = offsets_of(wanted, index_rank)
        return np.asarray(x[tuple(_moved(numbers, x.shape, wanted, starts, places))])

    return take


def _result_axes(numbers: GatherNumbers, rank: int) -> list[int]:
    """The axes of the result that are those of the start indices."""
    return [axis for axis in range(rank) if axis not in numbers.offset]


def _offsets(numbers: GatherNumbers, sizes: tuple[int, ...], index_rank: int) -> list[Array]:
    """For each axis of the operand the places within a slice, laid along the result's axis for it."""
    kept = [axis for axis in range(len(sizes)) if axis not in numbers.collapsed + numbers.operand_batch]
    rank = len(kept) + index_rank
    along = dict(zip(kept, numbers.offset, strict=True))
    return [
        np.arange(size).reshape([size if axis == along.get(own, -1) else 1 for axis in range(rank)])
        for own, size in enumerate(sizes)
    ]


def _moved(
    numbers: GatherNumbers, shape: tuple[int, ...], sizes: tuple[int, ...], starts: Array, offsets: list[Array]
) -> list[Array]:
    """The places in the operand, by its axes, of all elements of the result."""
    rank = offsets[0].ndim if offsets else starts.ndim - (numbers.vector_axis < starts.ndim)
    outer = _result_axes(numbers, rank)
    vectors = starts[..., None] if numbers.vector_axis == starts.ndim else np.moveaxis(starts, numbers.vector_axis, -1)
    grid = [1] * rank
    for axis, size in zip(outer, vectors.shape[:-1], strict=True):
        grid[axis] = size
    places = list(offsets)
    for component, own in enumerate(numbers.start_map):
        first = np.clip(vectors[..., component].astype(np.int64), 0, shape[own] - sizes[own])
        places[own] = places[own] + first.reshape(grid)
    for own, index_axis in zip(numbers.operand_batch, numbers.index_batch, strict=True):
        axis = outer[index_axis - (numbers.vector_axis < index_axis)]
        places[own] = np.arange(shape[own]).reshape([shape[own] if i == axis else 1 for i in range(rank)])
    return places
