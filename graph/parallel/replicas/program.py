"""What a replica runs of a graph: everything that the updates, the loss and the named outputs need.

    init --.        w_init, save and restore stay where they are: they read or assign the variables of replica 0
    w <----'        w, its read, forward, backward, updates, the learning rate: the program
    train           waits for the updates of all replicas

Placeholders are no part of it: a fed learning rate is one for all. Assignments whose value follows from constants are;
other assignments of the same variables, such as random initial values and restored checkpoints, bring their value to
all replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from ...columns import SINK_ID
from ...ops.record import State
from ..training_step import TrainingStep
from ..value_flow import ValueFlow, is_handle


class Parts(NamedTuple):
    """Nodes of the program: all; those that do not only set initial values; those that run in all replicas or in none.

    `assigns` are assignments from outside, with the node that makes the variable.
    """

    inside: set[int]
    step: set[int]
    assigns: dict[int, int]
    waits: list[int]


def program_of(step: TrainingStep, outputs: Iterable[int], *, placeholders: Collection[int] = ()) -> Parts:
    """What a replica runs; of the placeholders only those named.

    `outputs` are nodes whose values the caller wants of all replicas.
    """
    flow = step.flow
    before = [list[int]() for _ in range(flow.count)]
    for node, following in enumerate(flow.after):
        for consumer in following:
            before[consumer].append(node)
    inside = _closure([*step.updates, *step.statistics, *outputs], before, flow, placeholders)
    in_step = set(inside)
    while True:
        variables = {node for node in inside if _makes_variable(flow, node)}
        outside = [node for node in flow.updates if node not in inside and variables & set(flow.variables(node))]
        sure = [node for node in outside if _is_constant(flow, node, before, inside)]
        if not sure:
            break
        inside |= _closure(sure, before, flow, placeholders)
    made = {node: flow.variable(node) for node in outside}
    shared = {node: variable for node, variable in made.items() if variable in variables}
    changing = [node for node in flow.updates if node in inside]
    after = ValueFlow.reached(changing, flow.after) & inside
    return Parts(inside, in_step, shared, sorted(after))


def _closure(start: Iterable[int], before: list[list[int]], flow: ValueFlow, placeholders: Collection[int]) -> set[int]:
    seen = {node for node in start if node > SINK_ID}
    stack = list(seen)
    while stack:
        for node in before[stack.pop()]:
            kind = flow.kinds[node]
            if node in seen or kind is None:
                continue
            if kind.op_def.record.is_placeholder and node not in placeholders:
                continue
            seen.add(node)
            stack.append(node)
    return seen


def _makes_variable(flow: ValueFlow, node: int) -> bool:
    kind = flow.kinds[node]
    return kind is not None and flow.variable(node) == node and any(map(is_handle, kind.output_types))


def _is_constant(flow: ValueFlow, node: int, before: list[list[int]], inside: set[int]) -> bool:
    """Whether what a node does follows from constants and from variables of the program alone."""
    seen, stack = {node}, [node]
    while stack:
        at = stack.pop()
        kind = flow.kinds[at]
        assert kind is not None
        record = kind.op_def.record
        if record.is_placeholder or record.calls is not None or record.is_per_node:
            return False
        if record.state not in (None, State.VARIABLE) or (at != node and record.updates is not None):
            return False
        for source in before[at]:
            if source not in seen and source not in inside and source > SINK_ID:
                seen.add(source)
                stack.append(source)
    return True
