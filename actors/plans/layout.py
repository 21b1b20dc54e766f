"""A draft and the order of its nodes go in; the slot of each value and what the slots hold at first come out.

    values of -x + 1     1: the constant 1     2: x      3: -x     4: y
    slots                s5                    s6        s8        s7
    template             [None, None, None, None, None, 1.0, None, None, None]

Values behind identities share the slot of their source. Values that are fetched, or that the caller wants to read when
the program has ended, keep their slot to the end. The rest is decided in `slots`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...graph.arrays import Numbers, positions, sizes
from .draft import Draft
from .numbering import SlotNumber
from .roles import Role
from .slots import Lifetimes, allocate, lifetimes

if TYPE_CHECKING:
    from .assembler import Assembler


class Program(NamedTuple):
    """The nodes that need an instruction, in the order in which they run, and the segment at each position.

    `position` is by node: where the program computes it, which for all sends of a message is the same; -1 for nodes
    without an instruction.
    """

    nodes: Numbers
    segment_at: Numbers
    position: Numbers


class SlotTable(NamedTuple):
    """The slot of every value, those behind identities included, and the number of slots."""

    of_value: list[SlotNumber]
    num_slots: int


def slots_of(draft: Draft, program: Program, *, rank: Numbers | None = None, kept: Iterable[int] = ()) -> SlotTable:
    """Slots for the values of a draft.

    `rank` is by value: those with a rank are neighbours, in its order. `kept` are values that must be there when the
    program has ended, besides those that are fetched.
    """
    columns, position = draft.columns, program.position
    defined_at = np.full(draft.num_values, -1, np.int64)
    defined_at[1 : columns.num_values] = np.repeat(position, sizes(columns.first_value))
    defined_at[list(draft.own_value.values())] = position[list(draft.own_value)]
    used, at = _uses(draft, position)
    lives = lifetimes(defined_at, used, at, program.segment_at)
    lives.pinned[[0, *map(draft.result, draft.nodes(Role.RETVAL).tolist()), *kept]] = True
    own = positions(draft.source == np.arange(draft.num_values))  # not behind identities
    rank = np.zeros(draft.num_values, np.int64) if rank is None else rank
    allocated, num_slots = allocate(Lifetimes(lives.defined_at[own], lives.last_use[own], lives.pinned[own]), rank[own])
    slots = np.zeros(draft.num_values, np.int64)
    slots[own] = allocated
    return SlotTable(slots[draft.source].tolist(), num_slots)


def _uses(draft: Draft, position: Numbers) -> tuple[Numbers, Numbers]:
    """Which values are read, at which positions of the program: inputs, and the deadness flags of control inputs."""
    used, at = draft.source[draft.columns.data_value], position[draft.columns.data.dst]
    watched = [(flag, position[node]) for node, flags in draft.watched.items() for flag in flags]
    flags, flags_at = np.array(watched, np.int64).reshape(-1, 2).T
    used, at = np.concatenate([used, flags]), np.concatenate([at, flags_at])
    return used[at >= 0], at[at >= 0]


def template_of(draft: Draft, assembler: Assembler, num_slots: int) -> list[Any]:  # Any: tensors of any type
    """What the slots hold before the first instruction: the constants that need none."""
    template: list[Any] = [None] * num_slots
    for value, constant in assembler.constants.items():
        template[assembler.slots[value]] = constant
    return template
