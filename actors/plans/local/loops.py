"""Loops that one device runs by itself: they exchange no messages and wait for nothing.

The Switches on the loop's condition divide the nodes of an iteration. Nodes that depend on no Switch are the condition
part, which runs every time. Nodes behind the true outputs are the body. The false outputs are the values that leave the
loop; nothing is computed from them in the loop. So no instruction of a local loop looks for DEAD on account of them,
and the last iteration ends after the condition part.

    x0 -> [condition part] --false--> the exits' values leave
               ^   `--true--> [body part] -> next values
               `------------------------------'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..columns import Nodes, NumberedEdges, OrderedGraph, ordered_columns
from ..levels import Deferred, Loop
from ..numbering import NodeNumber, ValueNumber
from ..plan import LocalLoop, Segment
from ..roles import Role, roles_of
from ..tracing import begin_iteration
from .stretches import Stretches

if TYPE_CHECKING:
    from ..binding import Binder

_ALWAYS, _TRUE, _FALSE = 0, 1, 2
_COSTS_NOTHING = (Role.ALIAS, Role.RETVAL, Role.NOTHING)


def local_loop(
    loop: Loop, binder: Binder, inner: Mapping[str, object], *, every_node: bool = False
) -> LocalLoop | None:
    """The loop that a device runs by itself; None if it exchanges messages, waits, or is built in an unusual way.

    `inner` are the compiled loops of the partition; those inside this one are among them. With `every_node` each node
    has an instruction, and a clock around it.
    """
    if {Role.SEND, Role.RECV}.intersection(roles_of(loop.columns.kinds)):
        return None
    for kind in loop.columns.kinds:
        if isinstance(kind, Deferred) and not isinstance(inner.get(kind.frame), LocalLoop):
            return None
    sides = _sides(loop)
    if sides is None:
        return None
    columns, is_body = _without_switches(loop.columns, sides)
    return _compiled(loop, Stretches(columns, binder, inner, every_node=every_node), columns, is_body)


@dataclass(frozen=True, slots=True)
class _Sides:
    """By node: the side of the loop's Switches that it is on. The Switches, and the LoopCond, as nodes."""

    of_node: list[int]
    switches: set[int]
    condition: int


def _sides(loop: Loop) -> _Sides | None:
    """None unless one LoopCond decides, and everything that goes on, and nothing else, depends on its true side."""
    columns = loop.columns
    conditions = [node for node, kind in enumerate(columns.properties) if kind.op_def.name == "LoopCond"]
    if len(conditions) != 1:
        return None
    first, inputs, controls = columns.first_value.tolist(), columns.inputs, columns.control_inputs
    predicate = first[conditions[0]]
    roles = map(roles_of(columns.kinds).__getitem__, columns.kind.tolist())
    of_node, of_value = [_ALWAYS] * columns.num_nodes, [_ALWAYS] * columns.num_values
    switches: set[int] = set()
    for node, role in enumerate(roles):
        side = _ALWAYS
        for value in inputs[node]:
            side |= of_value[value]
        for source in controls[node]:
            side |= of_node[source]
        if role is Role.SWITCH and inputs[node][1] == predicate:
            if side:
                return None
            switches.add(node)
            of_value[first[node]], of_value[first[node] + 1] = _FALSE, _TRUE
            continue
        if not _is_usual(loop, columns, node, role, side):
            return None
        of_node[node] = side
        for value in range(first[node], first[node + 1]):
            of_value[value] = side
    return _Sides(of_node, switches, conditions[0])


def _is_usual(loop: Loop, columns: OrderedGraph, node: int, role: Role, side: int) -> bool:
    if role is Role.RETVAL:
        return side == (_TRUE if columns.properties[node].attrs["index"] < loop.num_variables else _FALSE)
    return side < _FALSE or (side == _FALSE and role in _COSTS_NOTHING)


def _without_switches(columns: OrderedGraph, sides: _Sides) -> tuple[OrderedGraph, list[bool]]:
    """The columns without the loop's switches, the condition part first; and which nodes are the body."""
    kept = [node for node in range(columns.num_nodes) if node not in sides.switches]
    kept.sort(key=lambda node: sides.of_node[node] != _ALWAYS)
    place = {node: position for position, node in enumerate(kept)}
    source = dict(
        zip(
            zip(columns.data.dst.tolist(), columns.data.port.tolist(), strict=True),
            zip(columns.data.src.tolist(), columns.data.output.tolist(), strict=True),
            strict=True,
        )
    )
    edges: list[tuple[int, int, int, int]] = []
    for (dst, port), (src, output) in source.items():
        if dst in place:
            while src in sides.switches:
                src, output = source[src, 0]
            edges.append((place[src], output, place[dst], port))
    for src, dst in zip(columns.control.src.tolist(), columns.control.dst.tolist(), strict=True):
        if dst in place:
            before = place[src] if src in place else place[sides.condition]
            edges.append((before, -1, place[dst], -1))
    nodes = Nodes(columns.ids, columns.names, columns.kinds, columns.kind).reordered(np.array(kept, np.int64))
    without = ordered_columns(nodes, NumberedEdges(*np.array(edges, np.int64).reshape(-1, 4).T))
    return without, [sides.of_node[node] == _TRUE for node in kept]


def _compiled(loop: Loop, level: Stretches, columns: OrderedGraph, is_body: list[bool]) -> LocalLoop:
    """Sorts the instructions of a loop without its Switches into condition part and body."""
    (condition,) = [node for node, kind in enumerate(columns.properties) if kind.op_def.name == "LoopCond"]
    predicate = ValueNumber(int(level.draft.source[columns.first_value[condition]]))
    slots = level.lay_out(kept=[predicate])
    begin = Segment(([begin_iteration(loop.name)],), [NodeNumber(condition)]) if level.draft.every_node else None
    before, body = level.assemble(is_body, begin)
    entering, counted = loop.entering(level.arguments)
    next_values, exits = loop.leaving(level.results)
    return LocalLoop(
        plan=level.plan(),
        condition=tuple(before),
        body=tuple(body),
        predicate=slots[predicate],
        arguments=entering,
        counted=counted,
        variables=entering[: loop.num_variables],
        next_values=next_values,
        exits=exits,
    )
