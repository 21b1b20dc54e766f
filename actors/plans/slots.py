"""Slots for values: a small register file instead of one place per tensor.

Flows in: for every value, where it is made and where it is used. Flows out: its slot. Always holds: two values share
a slot only if the first is used for the last time not later than the second is made, in program order; a value that
outlives its segment, or is there before the step starts, has a slot of its own, and so segments may run in any order
as long as one ends before the next begins. Storing into a slot is what frees the tensor that was there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...graph.arrays import Numbers
from .instructions import FIRST_FREE_SLOT


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """When values live, in positions of the program; `made` is -1 for values that need no instruction.

    `last_use` is the position of the last instruction that reads the value, `pinned` marks those that must be kept.
    """

    made: Numbers
    last_use: Numbers
    pinned: np.ndarray[tuple[int], np.dtype[np.bool_]]


def lifetimes(made: Numbers, used_value: Numbers, used_at: Numbers, segment_at: Numbers) -> Lifetimes:
    """Lifetimes from uses (`used_value[k]` is read at position `used_at[k]`) and the segment of each position."""
    last_use = made + 1  # an output that nobody reads is free for the next instruction
    np.maximum.at(last_use, used_value, used_at)
    pinned = made < 0
    if len(segment_at) and segment_at[-1] != segment_at[0]:
        known = ~pinned[used_value]
        values = used_value[known]
        pinned[values[segment_at[made[values]] != segment_at[used_at[known]]]] = True
    return Lifetimes(made, last_use, pinned)


def allocate(lives: Lifetimes, rank: Numbers) -> tuple[list[int], int]:
    """The slot of every value, and the number of slots; slots of pinned values ascend with their `rank`."""
    kept = np.flatnonzero(lives.pinned)
    kept = kept[np.argsort(rank[kept], kind="stable")]
    slots = np.zeros(len(lives.made), np.int64)
    slots[kept] = np.arange(len(kept)) + FIRST_FREE_SLOT
    result, next_slot = slots.tolist(), FIRST_FREE_SLOT + len(kept)
    local = np.flatnonzero(~lives.pinned)
    births = local[np.argsort(lives.made[local], kind="stable")]
    deaths = local[np.argsort(lives.last_use[local], kind="stable")]
    dying, death_positions = deaths.tolist(), lives.last_use[deaths].tolist()
    free: list[int] = []
    freed = 0
    for value, position in zip(births.tolist(), lives.made[births].tolist(), strict=True):
        while death_positions[freed] <= position:  # stops at the latest at the value itself, which dies later
            free.append(result[dying[freed]])
            freed += 1
        if free:
            result[value] = free.pop()
        else:
            result[value] = next_slot
            next_slot += 1
    return result, next_slot
