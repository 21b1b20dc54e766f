"""Deadness analysis: which nodes of a level may be dead in some step, so that only those look for DEAD.

    pred, x -> Switch -> false: a -> Neg -> b       b is dead in the steps in which pred is true
                      `> true:  c -> Exp -> d       d in the others
                                     Merge(b, d)    alive in every step that runs the Switch

A node may be dead if something it waits for may be; a Merge only if all its data inputs may be. A Switch runs itself,
but its outputs may be dead. A ControlTrigger is never dead, and a send runs in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ...graph.arrays import Flags
from .columns import OrderedGraph
from .roles import Role

_SWITCHES = (Role.SWITCH, Role.SWITCH_N)


def may_be_dead(columns: OrderedGraph, roles: Sequence[Role], dead_sources: Collection[Role] = ()) -> Flags:
    """By node: whether it may be dead. Nodes that are not flagged are alive in every step.

    `dead_sources` are roles, besides those of switches, whose outputs may be dead although all their inputs are alive.
    """
    dead_sources = {*_SWITCHES, *dead_sources}
    if not dead_sources.intersection(roles):
        return np.zeros(columns.num_nodes, bool)
    nodes, values = bytearray(columns.num_nodes), bytearray(columns.num_values)
    inputs, controls, first = columns.inputs, columns.control_inputs, columns.first_value.tolist()
    # A loop, as a node's flag depends on those before it: numpy would need a pass per node of the longest path.
    for node, role in enumerate(roles):
        if role is Role.TRIGGER:
            continue
        if role is Role.MERGE:
            dies = all(values[v] for v in inputs[node])
        else:
            dies = any(values[v] for v in inputs[node]) or any(
                nodes[source] and roles[source] is not Role.SEND for source in controls[node]
            )
        if role is Role.ARRIVAL:  # it has no inputs; its launch, the node before it, has them
            dies = bool(nodes[node - 1]) or role in dead_sources
        nodes[node] = dies
        if dies or role in dead_sources:
            for value in range(first[node], first[node + 1]):
                values[value] = 1
    return np.frombuffer(nodes, bool)
