"""Scatters: elements combined, by a function that the node names, with those of an array at computed places.

Elements for the same place are combined one after the other, in their order. Without a ufunc this takes rounds, each
with at most one element for a place:

    places  [5, 2, 5, 5]       round 0: elements 0, 1     round 1: element 2     round 2: element 3
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.xla.dimension_numbers import GatherNumbers, gather_numbers
from ..checks import require
from ..datasets.dataset import PullSteps
from ..half_types import widen
from ..registry import Call, Construction, Start, deferred_kernel
from .computations import XlaComputation, carry_out, reducer
from .indexed_slices import are_inside, check_axes, index_rank, places_of_slices, within_slices


@deferred_kernel("XlaScatter")
def scatter(node: Construction) -> Start:
    """The operand with each slice of updates combined; slices that do not lie in it as a whole are left out."""
    numbers = gather_numbers(node.attrs["dimension_numbers"])
    computation = reducer(node, "update_computation", node.output_types)

    def start(call: Call, x: Array, starts: Array, updates: Array) -> None:
        x, updates = np.asarray(x), np.asarray(updates)
        inside, places = _targets(numbers, x.shape, np.asarray(starts), updates.shape)
        carry_out(call, _scattered(computation, x, places[inside], updates[inside]))

    return start


def _targets(
    numbers: GatherNumbers, shape: tuple[int, ...], starts: Array, updates: tuple[int, ...]
) -> tuple[Array, Array]:
    """For each element of the updates whether it is used, and its place in the flattened operand."""
    rank = index_rank(numbers, starts) + len(numbers.offset)
    dropped = numbers.collapsed + numbers.operand_batch
    require(
        rank == len(updates) and len(numbers.offset) + len(dropped) == len(shape),
        f"updates of shape {shape_text(updates)} do not fit an operand of shape {shape_text(shape)}",
    )
    check_axes(numbers, starts.shape, len(shape))
    outer = [size for axis, size in enumerate(updates) if axis not in numbers.offset]
    require(
        outer == [size for axis, size in enumerate(starts.shape) if axis != numbers.vector_axis],
        f"updates of shape {shape_text(updates)} do not fit scatter indices of shape {shape_text(starts.shape)}",
    )
    window = iter([updates[axis] for axis in numbers.offset])
    sizes = tuple([1 if axis in dropped else next(window) for axis in range(len(shape))])
    fits = all(
        size <= whole for axis, (size, whole) in enumerate(zip(sizes, shape, strict=True)) if axis not in dropped
    )
    require(fits, f"slices of shape {shape_text(sizes)} do not fit an operand of shape {shape_text(shape)}")
    offsets = within_slices(numbers, sizes, index_rank(numbers, starts))
    inside = np.broadcast_to(are_inside(numbers, shape, sizes, starts, rank), updates)
    if not inside.any() or 0 in shape:
        return np.zeros(updates, bool), np.zeros(updates, np.int64)
    places = places_of_slices(numbers, shape, sizes, starts, offsets)
    return inside, np.broadcast_to(np.ravel_multi_index(places, shape) if places else np.int64(0), updates)


def _scattered(computation: XlaComputation, x: Array, places: Array, updates: Array) -> PullSteps[Sequence[Array]]:
    result = x.flatten()
    yield from combine_at(computation, result, places, updates)
    return (result.reshape(x.shape),)


def combine_at(computation: XlaComputation, target: Array, places: Array, values: Array) -> PullSteps[None]:
    """Combines values, in their order, with the elements of a flat array at these places, and writes them there."""
    if computation.operation == ("Identity", (1,)):
        target[places] = values
    elif computation.ufunc is not None:
        wide = widen(target)
        computation.ufunc.at(wide, places, widen(values))
        target[...] = wide
    else:
        for turn in _rounds(places):
            combined = yield from computation.each(target[places[turn]], values[turn])
            target[places[turn]] = combined[0]


def _rounds(places: Array) -> Iterator[Array]:
    """The numbers of elements with different places, round by round."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    firsts = np.maximum.accumulate(np.where(is_new, np.arange(len(ordered)), 0))
    turns = np.arange(len(ordered)) - firsts
    by_turn = np.argsort(turns, kind="stable")
    ends = np.cumsum(np.bincount(turns))
    for first, last in pairwise([0, *ends.tolist()]):
        yield order[by_turn[first:last]]
