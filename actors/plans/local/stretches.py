"""The columns of a level that one device runs by itself go in, its instructions come out, on slots of their own.

There are no messages and no waiting, so all nodes run in the order of the columns. Where a loop, or a conditional of
long functions, stands among them, the instructions are divided:

    nodes          a  b  LOOP  c
    stretches      [a, b]  Inner(LOOP)  [c]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....graph.arrays import positions
from ..assembler import Assembler
from ..draft import Draft, draft_of
from ..layout import Program, slots_of, template_of
from ..levels import Deferred
from ..numbering import NodeNumber, SlotNumber, ValueNumber
from ..plan import Inner, LocalChoice, LocalLoop, Plan, Segment, Stretch
from ..roles import Role
from ..tracing import timed_instruction
from ..transfers import NO_MESSAGES

if TYPE_CHECKING:
    from ..binding import Binder
    from ..columns import OrderedGraph
    from ..instructions import Instruction

_InnerWork = LocalLoop | LocalChoice


class Stretches:
    """Compiles one level; `inner` has by frame what its deferred nodes stand for, all of it for this device alone.

    With `every_node` each node has an instruction, and a clock around it.
    """

    def __init__(
        self, columns: OrderedGraph, binder: Binder, inner: Mapping[str, object], *, every_node: bool = False
    ) -> None:
        self._inner = inner
        self._columns = columns
        self._device = binder.device
        self.draft: Draft = draft_of(columns, binder, every_node=every_node)
        self._program = positions(self.draft.emits)
        self._binder = binder

    def lay_out(self, kept: Iterable[ValueNumber] = ()) -> list[SlotNumber]:
        """The slots of values; those that are `kept` have theirs to the end."""
        position = np.full(self._columns.num_nodes, -1, np.int64)
        position[self._program] = np.arange(len(self._program))
        in_one_segment = Program(self._program, np.zeros(len(self._program), np.int64), position)
        self.slots, self._num_slots = slots_of(self.draft, in_one_segment, kept=kept)
        self._assembler = Assembler(self.draft, self.slots, self._binder, NO_MESSAGES)
        return self.slots

    @property
    def arguments(self) -> dict[int, SlotNumber]:
        """The slots of arguments, by index."""
        nodes, draft = self.draft.nodes(Role.ARG).tolist(), self.draft
        return {self._columns.properties[node].attrs["index"]: self.slots[draft.first[node]] for node in nodes}

    @property
    def results(self) -> dict[int, SlotNumber]:
        """The slots of results, by index."""
        nodes, draft = self.draft.nodes(Role.RETVAL).tolist(), self.draft
        return {self._columns.properties[node].attrs["index"]: self.slots[draft.result(node)] for node in nodes}

    def assemble(self, is_later: Sequence[bool], begin: Segment | None = None) -> tuple[list[Stretch], list[Stretch]]:
        """The stretches, apart for nodes that are not `is_later` and for those that are; `begin` comes before them."""
        stretches: tuple[list[Stretch], list[Stretch]] = ([] if begin is None else [begin], [])
        instructions = self._assembler.assemble(self._program)
        for node, instruction in zip(self._program.tolist(), instructions, strict=True):
            self._add(stretches[is_later[node]], node, instruction)
        for stretch in (*stretches[False], *stretches[True]):
            if isinstance(stretch, Segment):
                stretch.set_apart_file_waits(self._columns.properties)
        return stretches

    def plan(self) -> Plan:
        """Names, properties and the template; the stretches are what runs."""
        template = template_of(self.draft, self._assembler, self._num_slots)
        return Plan(self._device, template, self._columns.names, self._columns.properties)

    def _add(self, stretches: list[Stretch], node: NodeNumber, instruction: Instruction) -> None:
        """Adds an instruction to the last stretch, or what is one of its own."""
        kind, name = self._columns.properties[node], self._columns.names[node]
        if isinstance(kind, Deferred):
            stretches.append(self._inner_at(node, kind))
            return
        if self.draft.every_node:
            written = self.slots[self.draft.first[node] : self.draft.first[node + 1]]
            instruction = timed_instruction(instruction, self._device, name, kind, written)
        last = stretches[-1] if stretches else None
        if not isinstance(last, Segment):
            last = Segment(([],), [])
            stretches.append(last)
        assert isinstance(last.origins, list)  # of a segment that is being filled
        last.chunks[0].append(instruction)
        last.origins.append(node)

    def _inner_at(self, node: NodeNumber, kind: Deferred) -> Inner:
        work, slots, draft = self._inner[kind.frame], self.slots, self.draft
        assert isinstance(work, _InnerWork)  # else the level would not be for one device alone
        inputs = tuple(slots[value] for value in draft.inputs[node])
        outputs = tuple(slots[draft.first[node] : draft.first[node + 1]])
        control = tuple(slots[value] for value in draft.watched.get(node, ()))
        return Inner(work, inputs, outputs, (*inputs, *control) if draft.may_be_dead[node] else (), node)
