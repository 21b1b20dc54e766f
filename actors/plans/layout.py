"""Where the values of a draft live: slots for all of them, and the constants that are there from the beginning.

Flows in: a draft, the position in the program of every node that has an instruction. Flows out: a slot per value, a
template of slots. Always holds: what `slots.py` says; fetched values and those that somebody names stay until the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph.arrays import Flags, Numbers
from .draft import Draft
from .roles import Role
from .slots import Lifetimes, allocate, lifetimes

if TYPE_CHECKING:
    from .assembler import Assembler


def slots_of(
    draft: Draft, position: Numbers, segment_at: Numbers, rank: Numbers | None = None, kept: Iterable[int] = ()
) -> tuple[list[int], int]:
    """The slot of every value, identities included, and the number of slots.

    `position` is -1 for nodes without an instruction; values with a rank are neighbours in its order; `kept` are values
    that must be there when the program has ended, besides those that are fetched.
    """
    columns = draft.columns
    made = np.full(draft.num_values, -1, np.int64)
    made[1 : columns.num_values] = np.repeat(position, np.diff(columns.first_value))
    if draft.num_values > columns.num_values:
        made[columns.num_values : columns.num_values + columns.num_nodes] = position
    used, at = draft.source[columns.data_value], position[columns.data.dst]
    read = at >= 0
    watched, watched_at = _control_uses(draft, position)
    lives = lifetimes(made, np.concatenate([used[read], watched]), np.concatenate([at[read], watched_at]), segment_at)
    results = [draft.result(node) for node in np.flatnonzero(draft.codes == Role.RETVAL).tolist()]
    lives.pinned[[0, *results, *kept]] = True
    rank = np.zeros(draft.num_values, np.int64) if rank is None else rank
    placed = np.flatnonzero(_has_slot(draft, results))
    compact = Lifetimes(lives.made[placed], lives.last_use[placed], lives.pinned[placed])
    found, num_slots = allocate(compact, rank[placed])
    slots = np.zeros(draft.num_values, np.int64)
    slots[placed] = found
    return slots[draft.source].tolist(), num_slots


def _has_slot(draft: Draft, results: list[int]) -> Flags:
    """Which values live in a slot of their own: not those behind identities, and of the extra ones those in use."""
    has_slot: Flags = draft.source == np.arange(draft.num_values)
    has_slot[draft.columns.num_values :] = False
    has_slot[results] = True
    if draft.num_values > draft.columns.num_values:
        has_slot[list(draft.tokens)] = True
        has_slot[draft.arrivals[np.flatnonzero((draft.codes == Role.RECV) & draft.emits)]] = True
    return has_slot


def _control_uses(draft: Draft, position: Numbers) -> tuple[Numbers, Numbers]:
    """Which witnesses are read at which positions."""
    pairs = [(v, position[node]) for node, witnesses in draft.watched.items() for v in witnesses if position[node] >= 0]
    uses = np.array(pairs, np.int64).reshape(-1, 2)
    return uses[:, 0], uses[:, 1]


def template_of(draft: Draft, assembler: Assembler, num_slots: int) -> list[Any]:  # Any: tensors of any type
    """What the slots hold before the first instruction: the constants that need none."""
    template: list[Any] = [None] * num_slots
    columns = draft.columns
    for node in np.flatnonzero((draft.codes == Role.CONST) & ~draft.emits).tolist():
        value = assembler.binder.constant(columns.names[node], columns.properties[node])
        template[assembler.slots[draft.first[node]]] = value
    return template
