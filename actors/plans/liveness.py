"""Which nodes and values of a partition may be dead, so that only those are compiled to look for DEAD.

Flows in: columns, the role of each node, which roles may bring dead tensors. Flows out: two flags, per node and
per value. Always holds: what is not flagged is alive in every run. A node may be dead if something it waits for may
be, a Merge if all its data inputs may be; a Switch makes outputs that may be dead although it runs itself; a trigger
never dies; a send runs in any case; of a loop over several devices any exit may be dead.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .columns import Columns
from .roles import Role

_BRINGS_DEATH = (Role.SWITCH, Role.SWITCH_N)


@dataclass(frozen=True, slots=True)
class Mortality:
    """What may be dead: `nodes[n]` the node itself, `values[v]` an output (numbers as in `Columns`)."""

    nodes: bytearray
    values: bytearray


def mortality(columns: Columns, roles: list[Role], brings_death: Collection[Role]) -> Mortality | None:
    """The flags, or None when nothing in the partition can be dead.

    `brings_death` are roles, besides those of switches, whose outputs may be dead although their inputs are alive.
    """
    brings_death = {*_BRINGS_DEATH, *brings_death}
    if not brings_death.intersection(roles):
        return None
    nodes, values = bytearray(columns.num_nodes), bytearray(columns.num_values)
    inputs, controls, first = columns.inputs, columns.control_inputs, columns.first_value.tolist()
    for node, role in enumerate(roles):
        if role is Role.TRIGGER:
            continue
        if role is Role.MERGE:
            dies = all(values[v] for v in inputs[node])
        else:
            dies = any(values[v] for v in inputs[node]) or any(
                nodes[source] and roles[source] is not Role.SEND for source in controls[node]
            )
        if role is Role.ARRIVAL:
            dies = bool(nodes[node - 1]) or role in brings_death
        nodes[node] = dies
        if dies or role in brings_death:
            for value in range(first[node], first[node + 1]):
                values[value] = 1
    return Mortality(nodes, values)
