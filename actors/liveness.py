"""Which nodes and values of a partition may be dead, so that only those are compiled to look for DEAD.

Flows in: columns, the role of each node, whether receives may bring dead tensors. Flows out: two flags, per node and
per value. Always holds: what is not flagged is alive in every run. A node may be dead if something it waits for may
be, a Merge if all its data inputs may be; a Switch makes outputs that may be dead although it runs itself; a trigger
never dies; a send runs in any case.
"""

from __future__ import annotations

from dataclasses import dataclass

from .columns import Columns
from .roles import Role

_BRINGS_DEATH = (Role.SWITCH, Role.SWITCH_N)


@dataclass(frozen=True, slots=True)
class Mortality:
    """What may be dead: `nodes[n]` the node itself, `values[v]` an output (numbers as in `Columns`)."""

    nodes: bytearray
    values: bytearray


def mortality(columns: Columns, roles: list[Role], receives_may_be_dead: bool) -> Mortality | None:
    """The flags, or None when nothing in the partition can be dead."""
    present = set(roles)
    if not present.intersection(_BRINGS_DEATH) and not (receives_may_be_dead and Role.RECV in present):
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
        nodes[node] = dies
        if dies or role in _BRINGS_DEATH or (role is Role.RECV and receives_may_be_dead):
            for value in range(first[node], first[node + 1]):
                values[value] = 1
    return Mortality(nodes, values)
