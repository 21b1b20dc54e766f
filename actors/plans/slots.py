"""Slots for values: values whose lifetimes do not overlap take turns in a slot.

    program      0: a = Neg(x)       1: b = Exp(a)     2: c = Neg(b)       x is fed, c is fetched
    lifetimes    x: -1 to 0          a: 0 to 1         b: 1 to 2           c: 2 to the end
    slots        s5 for x, s6 for c, s7 for a, then b

Two values share a slot only if the first is read for the last time not later than the second is made, in program order:
an instruction loads its inputs before it stores its output. A value that is read in another segment, or is there before
the step starts, has a slot of its own: so segments may run in any order, as long as one ends before the next begins. A
tensor is freed when the next value is stored into its slot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...graph.arrays import Numbers, positions
from .instructions import FIRST_FREE_SLOT


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """By value: when it lives, in positions of the program.

    `defined_at` is -1 for values that need no instruction; `last_use` is where the value is read for the last time.
    `pinned` values have a slot of their own.
    """

    defined_at: Numbers
    last_use: Numbers
    pinned: np.ndarray[tuple[int], np.dtype[np.bool_]]


def lifetimes(defined_at: Numbers, used_value: Numbers, used_at: Numbers, segment_at: Numbers) -> Lifetimes:
    """Lifetimes from uses (`used_value[k]` is read at position `used_at[k]`) and the segment of each position."""
    # `for v, at in zip(used_value, used_at): last_use[v] = max(last_use[v], at)`
    last_use = defined_at + 1  # the slot of an output that is never read is free for the next instruction
    np.maximum.at(last_use, used_value, used_at)
    pinned = defined_at < 0
    if len(segment_at) and segment_at[-1] != segment_at[0]:
        # `for v, at in ...: pinned[v] |= segment_at[defined_at[v]] != segment_at[at]`, for values with an instruction
        by_instruction = ~pinned[used_value]
        values = used_value[by_instruction]
        pinned[values[segment_at[defined_at[values]] != segment_at[used_at[by_instruction]]]] = True
    return Lifetimes(defined_at, last_use, pinned)


def allocate(lives: Lifetimes, rank: Numbers) -> tuple[list[int], int]:
    """The slot of every value, and the number of slots; slots of pinned values ascend with their `rank`.

    Slots in use depend on all values before, so that this is a loop, over lists: one turn costs less than an access to
    an array.
    """
    kept = positions(lives.pinned)
    kept = kept[np.argsort(rank[kept], kind="stable")]
    slots = np.zeros(len(lives.defined_at), np.int64)
    slots[kept] = np.arange(len(kept)) + FIRST_FREE_SLOT
    result, next_slot = slots.tolist(), FIRST_FREE_SLOT + len(kept)
    local = positions(~lives.pinned)
    by_definition = local[np.argsort(lives.defined_at[local], kind="stable")]
    by_last_use = local[np.argsort(lives.last_use[local], kind="stable")]
    unused_next, last_uses = by_last_use.tolist(), lives.last_use[by_last_use].tolist()
    free: list[int] = []
    freed = 0
    for value, position in zip(by_definition.tolist(), lives.defined_at[by_definition].tolist(), strict=True):
        while last_uses[freed] <= position:  # stops at the latest at the value itself, whose last use is later
            free.append(result[unused_next[freed]])
            freed += 1
        if free:
            result[value] = free.pop()
        else:
            result[value] = next_slot
            next_slot += 1
    return result, next_slot
