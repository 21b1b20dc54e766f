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
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ...graph.arrays import Numbers, positions
from .assembler import Assembler
from .columns import Nodes, NumberedEdges, OrderedGraph, ordered_columns
from .draft import Draft, draft_of
from .layout import Program, slots_of, template_of
from .levels import Deferred, Loop
from .numbering import NodeNumber
from .plan import Inner, LocalLoop, Plan, Segment, Stretch
from .roles import Role, roles_of
from .tracing import begin_iteration, timed_instruction
from .transfers import NO_MESSAGES

if TYPE_CHECKING:
    from .binding import Binder
    from .instructions import Instruction

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
    return _Compiler(loop, columns, is_body, binder, inner, every_node=every_node).compile()


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


class _Compiler:
    """Compiles one local loop; `columns` are those without its Switches."""

    def __init__(
        self,
        loop: Loop,
        columns: OrderedGraph,
        is_body: list[bool],
        binder: Binder,
        inner: Mapping[str, object],
        *,
        every_node: bool,
    ) -> None:
        self.loop = loop
        self.columns = columns
        self.is_body = is_body
        self.inner = inner
        self.draft: Draft = draft_of(columns, binder, every_node=every_node)
        self.program: Numbers = positions(self.draft.emits)
        (condition,) = [node for node, kind in enumerate(columns.properties) if kind.op_def.name == "LoopCond"]
        position = np.full(columns.num_nodes, -1, np.int64)
        position[self.program] = np.arange(len(self.program))
        predicate = int(self.draft.source[columns.first_value[condition]])
        self.condition = NodeNumber(condition)
        in_one_segment = Program(self.program, np.zeros(len(self.program), np.int64), position)
        self.slots, self.num_slots = slots_of(self.draft, in_one_segment, kept=[predicate])
        self.predicate = self.slots[predicate]
        self.assembler = Assembler(self.draft, self.slots, binder, NO_MESSAGES)
        self.device = binder.device
        self._origins: list[NodeNumber] = []  # of the segment that is being filled

    def compile(self) -> LocalLoop:
        """Makes the instructions, and sorts them into condition part and body."""
        instructions = self.assembler.assemble(self.program)
        stretches: tuple[list[Stretch], list[Stretch]] = ([], [])
        if self.draft.every_node:
            self._origins.append(self.condition)
            stretches[False].append(Segment(([begin_iteration(self.loop.name)],), self._origins))
        for node, instruction in zip(self.program.tolist(), instructions, strict=True):
            self._add(stretches[self.is_body[node]], node, instruction)
        for stretch in chain(*stretches):
            if isinstance(stretch, Segment):
                stretch.set_apart_file_waits(self.columns.properties)
        draft, columns = self.draft, self.columns
        arguments, returns = draft.nodes(Role.ARG).tolist(), draft.nodes(Role.RETVAL).tolist()
        slot_of = {columns.properties[node].attrs["index"]: self.slots[draft.first[node]] for node in arguments}
        results = {columns.properties[node].attrs["index"]: self.slots[draft.result(node)] for node in returns}
        entering, counted = self.loop.entering(slot_of)
        next_values, exits = self.loop.leaving(results)
        template = template_of(draft, self.assembler, self.num_slots)
        return LocalLoop(
            plan=Plan(self.device, template, columns.names, columns.properties),
            condition=tuple(stretches[False]),
            body=tuple(stretches[True]),
            predicate=self.predicate,
            arguments=entering,
            counted=counted,
            next_values=next_values,
            exits=exits,
        )

    def _add(self, stretches: list[Stretch], node: NodeNumber, instruction: Instruction) -> None:
        """Adds an instruction to the last stretch, or an inner loop as one of its own."""
        kind = self.columns.properties[node]
        if isinstance(kind, Deferred):
            loop = self.inner[kind.frame]
            assert isinstance(loop, LocalLoop)  # else this loop would not be a local one
            slots, draft = self.slots, self.draft
            inputs = tuple(slots[value] for value in draft.inputs[node])
            outputs = tuple(slots[draft.first[node] : draft.first[node + 1]])
            control = tuple(slots[value] for value in draft.watched.get(node, ()))
            stretches.append(Inner(loop, inputs, outputs, (*inputs, *control) if draft.may_be_dead[node] else ()))
            return
        if self.draft.every_node:
            written = self.slots[self.draft.first[node] : self.draft.first[node + 1]]
            instruction = timed_instruction(instruction, self.device, self.columns.names[node], kind, written)
        last = stretches[-1] if stretches else None
        if not isinstance(last, Segment):
            self._origins = []
            last = Segment(([],), self._origins)
            stretches.append(last)
        last.chunks[0].append(instruction)
        self._origins.append(node)
