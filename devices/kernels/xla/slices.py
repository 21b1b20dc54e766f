"""Slices at a computed place, and cells added around and between others.

A start that would leave the array is moved to the nearest one that does not, as XLA defines it.
"""

from __future__ import annotations

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.arrays.strided import IndexEntry
from ....graph.ops.xla.xla_shapes import padded_size
from ..checks import require
from ..output_size import output_shape
from ..registry import simple


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


def ends_of(padding: Array, rank: int) -> list[list[int]]:
    """The widths (low, high) for each axis, zeros if none are given; InvalidArgumentError for another shape."""
    shape = padding.shape
    require(shape in ((rank, 2), (0, 2)), f"padding must have shape [{rank},2], or [0,2], not {shape_text(shape)}")
    ends: list[list[int]] = padding.tolist()
    return ends or [[0, 0]] * rank


def pad(x: Array, value: Array, low: Array, high: Array, interior: Array) -> Array:
    """Each axis with `low` and `high` cells added at its ends, dropped if negative, and `interior` between each two."""
    require(value.ndim == 0, f"padding_value input must be scalar, found rank {value.ndim}")
    for widths, name in ((low, "low"), (high, "high"), (interior, "interior")):
        require(widths.shape == (x.ndim,), f"padding_{name} must be a 1D tensor of size {x.ndim}")
    require(bool((interior >= 0).all()), "padding_interior must be non-negative")
    axes = list(zip(x.shape, low.tolist(), high.tolist(), interior.tolist(), strict=True))
    result = np.full(output_shape([padded_size(*axis) for axis in axes], x.dtype), value, x.dtype)
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
