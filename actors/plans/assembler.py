"""A draft and the slots of its values go in, the instructions of its nodes come out.

    y = -x + 1          slots: 1 is in s5 (it needs no instruction), x in s6, -x in s8, y in s7
    neg                 (np.negative, 6, 0, 8)         s8 = neg(s6)
    y                   (np.add, 8, 5, 7)              s7 = add(s8, s5)

Nodes of one or two inputs and one output that cannot be dead are nearly all nodes of most graphs. Their instructions
are made in bulk, column by column; the others one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...devices.kernels.registry import bound_forms
from ...graph.arrays import Flags, Numbers, first_seen, positions, sizes
from ...graph.dtypes import is_ref
from ...graph.ops.registry import find_op
from . import instructions as form
from .binding import is_shared
from .deferred import DeferredEnd
from .draft import Draft
from .numbering import NodeNumber, SlotNumber
from .roles import Role, roles_of

if TYPE_CHECKING:
    from ...devices.kernels.registry import BoundForm, Kernel, Start
    from ...graph.ops.properties import NodeProperties
    from .binding import Binder
    from .instructions import Instruction
    from .transfers import TransferMessages


def _bound_forms(properties: NodeProperties) -> Sequence[BoundForm]:
    """The forms of an op's kernel for constant inputs; a function that has the name of an op has none."""
    if len(properties.input_types) < 2 or find_op(properties.op) is not properties.op_def:
        return ()
    return bound_forms(properties.op)


class Assembler:
    """Makes the instructions of one partition. `slots[v]` is the slot of value `v`.

    `outgoing` are the messages that it sends, each from its last node.
    """

    def __init__(
        self,
        draft: Draft,
        slots: list[SlotNumber],
        binder: Binder,
        outgoing: TransferMessages,
        run_when_dead: Collection[str] = (),
    ) -> None:
        """`run_when_dead` are the frames of loops that run even when nothing alive goes in."""
        self._message = np.full(draft.columns.num_nodes, -1, np.int64)
        self._message[outgoing.last] = np.arange(len(outgoing.keys))
        self.outgoing = outgoing
        self.draft = draft
        self.slots = slots
        self.binder = binder
        self._run_when_dead = run_when_dead
        self._launch_number = {node: number for number, node in enumerate(draft.nodes(Role.LAUNCH).tolist())}

    def assemble(self, program: Numbers) -> list[Instruction]:
        """The instructions of the nodes of `program`, in its order."""
        simple = self._simple()[program]
        bulk = self._bulk(program[simple])
        if simple.all():
            return bulk
        instructions: list[Instruction] = [(form.identity, 0, 0, 0)] * len(program)
        for position, instruction in zip(positions(simple).tolist(), bulk, strict=True):
            instructions[position] = instruction
        others = positions(~simple)
        for position, node in zip(others.tolist(), program[others].tolist(), strict=True):
            instructions[position] = self._single(cast("NodeNumber", node))
        return instructions

    def _simple(self) -> Flags:
        """By node: whether its instruction can be made in bulk."""
        draft, columns = self.draft, self.draft.columns
        outputs = sizes(columns.first_value)
        inputs = sizes(columns.input_starts)
        computes = draft.has_role(Role.COMPUTE) & (outputs == 1) & (inputs >= 1) & (inputs <= 2)
        simple: Flags = (computes | draft.has_role(Role.SEND)) & ~draft.may_be_dead
        if draft.may_refer is not None:
            simple[columns.data.dst[draft.may_refer[columns.data_value]]] = False
        simple &= ~np.array(list(map(bool, self._bound_forms)), bool)[columns.kind]
        simple[self.outgoing.last[self.outgoing.sizes > 1]] = False
        return simple

    @cached_property
    def _bound_forms(self) -> list[Sequence[BoundForm]]:
        """By kind: the forms of its kernel for constant inputs. Traced plans show every input, and have none."""
        kinds = self.draft.columns.kinds
        if self.draft.every_node:
            return [()] * len(kinds)
        return [
            _bound_forms(kind) if role is Role.COMPUTE else ()
            for role, kind in zip(roles_of(kinds), kinds, strict=True)
        ]

    def _bulk(self, nodes: Numbers) -> list[Instruction]:
        """Instructions of sends, and of nodes that compute one output from one or two inputs."""
        draft, columns = self.draft, self.draft.columns
        if not len(nodes):
            return []
        # `for n in nodes: kernel(n), slots[inputs[n][0]], slots[inputs[n][1]] or 0, slots[first_value[n]]`, for a send
        # `key, 0, 0, slots[inputs[n][0]]`, a column at a time. The 0s at the ends are for nodes without outputs, or
        # without a second input, behind which no row is.
        slots = np.array([*self.slots, 0], np.int64)
        input_slots = np.append(slots[draft.source[columns.data_value]], 0)
        starts, is_send = columns.input_starts, draft.has_role(Role.SEND)[nodes]
        first = input_slots[starts[nodes]]
        has_two = starts[nodes + 1] - starts[nodes] == 2
        second = np.where(has_two, input_slots[starts[nodes] + 1], 0)
        last = np.where(is_send, first, slots[columns.first_value[nodes]])
        first[is_send] = 0
        return list(zip(self._kernels(nodes, is_send), first.tolist(), second.tolist(), last.tolist(), strict=True))

    def _kernels(self, nodes: Numbers, is_send: Flags) -> list[Kernel | str]:
        """The kernels of nodes that are made in bulk, looked up once per kind where nodes of a kind share them.

        Of sends the keys.
        """
        columns, kind = self.draft.columns, self.draft.columns.kind[nodes]
        shared = np.array([is_shared(p) for p in columns.kinds], bool)[kind]
        is_first = np.zeros(len(nodes), bool)  # of its kind
        is_first[first_seen(kind).first] = True
        # `for n in nodes: kernels.append(binder.kernel(n))` would ask the binder for nodes that have the same kernel.
        kernel_of_kind = np.full(len(columns.kinds), None, object)
        own: dict[int, Kernel] = {}
        for at in positions(~is_send & (is_first | ~shared)).tolist():
            node = int(nodes[at])
            own[at] = kernel_of_kind[kind[at]] = self.binder.kernel(columns.names[node], columns.properties[node])
        kernels: list[Kernel | str] = kernel_of_kind[kind].tolist()
        for at, kernel in own.items():
            kernels[at] = kernel
        sends = positions(is_send)
        for at, message in zip(sends.tolist(), self._message[nodes[sends]].tolist(), strict=True):
            kernels[at] = self.outgoing.keys[message]
        return kernels

    def _single(self, node: NodeNumber) -> Instruction:
        """The instruction of any node."""
        draft = self.draft
        role = draft.roles[node]
        inputs = [self.slots[v] for v in draft.inputs[node]]
        control = [self.slots[v] for v in draft.watched.get(node, ())]
        outputs = self.slots[draft.first[node] : draft.first[node + 1]]
        if role is Role.MERGE:
            return form.merge(inputs, outputs, self._read(node))
        if role is Role.SEND:
            return self._send(node, control)
        if role is Role.LAUNCH:
            return self._launch(node, inputs, control)
        if role is Role.DEFERRED:
            return form.identity, 0, 0, 0  # a loop in a local loop, which has a place for it
        if role is Role.RECV:
            inputs = [self.slots[draft.arrival[node]]]
        elif role is Role.RETVAL:
            outputs = [self.slots[draft.result(node)]]
        flag = self.flag(node)
        kernel, ports = self._kernel(node, role)
        if ports is not None:
            inputs = [inputs[port] for port in ports]
        if role is Role.SWITCH and not (control or flag or any(self._marks(node))):
            return form.switch_to(inputs, outputs)
        if role is Role.CONST and 1 <= len(control) <= 2 and not flag:
            return form.if_alive(form.always(self._constant(node)), control, outputs[0])
        if draft.may_be_dead[node] and (control or len(outputs) != 1 or not 1 <= len(inputs) <= 2 or flag):
            step = self._step(node, kernel, inputs, outputs)
            return form.guarded(step, [*inputs, *control], outputs, flag)
        if draft.may_be_dead[node] and kernel is not None:
            return form.if_alive(kernel, inputs, outputs[0])
        if kernel is None:
            return form.whole(self._step(node, kernel, inputs, outputs), inputs, outputs)
        return form.plain(kernel, inputs, outputs)

    def _launch(self, node: NodeNumber, inputs: list[SlotNumber], control: list[SlotNumber]) -> Instruction:
        end = self.draft.columns.properties[node]
        assert isinstance(end, DeferredEnd)  # launches have no other properties
        number, convert = self._launch_number[node], self._dereferenced(node, form.all_inputs)
        if self.draft.may_be_dead[node] and end.deferred.frame not in self._run_when_dead:
            return form.launch_either(number, inputs, control, convert)
        return form.launch(number, inputs, convert)

    def starter(self, node: NodeNumber, properties: NodeProperties) -> Start:
        """What starts a deferred kernel: `node` is its launch, `properties` are its own."""
        return self.binder.kernel(self.draft.columns.names[node], properties)

    def flag(self, node: NodeNumber) -> SlotNumber:
        """The slot of a node's deadness flag; 0 when an output is the flag or nobody looks at it."""
        draft = self.draft
        own = None if draft.roles[node] is Role.RETVAL else draft.own_value.get(node)
        return form.NO_SLOT if own is None else self.slots[own]

    def _send(self, node: NodeNumber, control: list[SlotNumber]) -> Instruction:
        """Sends a message. A tensor of it is dead if the input of its send is, or a control input.

        Of a variable whose receiver is not compiled here, maybe in another process, the present value is sent.
        """
        draft, message = self.draft, int(self._message[node])
        starts = self.outgoing.starts
        key, nodes = self.outgoing.keys[message], self.outgoing.nodes[starts[message] : starts[message + 1]].tolist()
        values = [self.slots[draft.inputs[send][0]] for send in nodes]
        if len(nodes) == 1:
            convert = self._read(node) if self.outgoing.is_unpaired[message] else self._passed_on(node)
            either = draft.may_be_dead[node]
            return form.send_either(key, values[0], control, convert) if either else form.send(key, values[0], convert)
        if not draft.may_be_dead[nodes].any():
            return form.send_bundle(key, values)
        watched = [[self.slots[v] for v in draft.watched.get(send, ())] for send in nodes]
        return form.send_bundle_either(key, values, watched)

    def _step(
        self, node: NodeNumber, kernel: Kernel | None, inputs: list[SlotNumber], outputs: list[SlotNumber]
    ) -> form.SlotStep:
        """The step of a node that is alive."""
        if self.draft.roles[node] is Role.CONST:
            return form.store(self._constant(node), outputs[0])
        return form.nothing if kernel is None else form.step_of(kernel, inputs, outputs)

    def _constant(self, node: NodeNumber) -> Any:
        columns = self.draft.columns
        return self.binder.constant(columns.names[node], columns.properties[node])

    def _kernel(self, node: NodeNumber, role: Role) -> tuple[Kernel | None, list[int] | None]:
        """The kernel of a node, with variables read for it; None for nodes that compute nothing.

        Also the ports that it reads, None for all of them.
        """
        columns = self.draft.columns
        if role in (Role.CONST, Role.NOTHING, Role.TRIGGER):
            return None, None
        if role is Role.COMPUTE:
            for bound in self._bound_forms[columns.kind[node]]:
                kernel, ports = self._bound(node, bound)
                if kernel is not None:
                    return kernel, ports
            kernel = self.binder.kernel(columns.names[node], columns.properties[node])
        elif role is Role.SWITCH:
            kernel = form.switch
        elif role is Role.SWITCH_N:
            kernel = form.switch_n(len(columns.properties[node].output_types))
        else:
            return self._passed_on(node), None
        return self._dereferenced(node, kernel), None

    def _bound(self, node: NodeNumber, bound: BoundForm) -> tuple[Kernel | None, list[int]]:
        """The kernel of a node whose inputs at the ports of a form are constants, or None, and the ports it reads."""
        inputs = self.draft.inputs[node]
        ports = [port % len(inputs) for port in bound.ports]
        values = [self.constants.get(inputs[port]) for port in ports]
        others = [port for port in range(len(inputs)) if port not in ports]
        if not others or any(value is None for value in values):
            return None, others
        kernel = self.binder.bound_kernel(self.draft.columns.properties[node], bound, values)
        marks = self._marks(node)
        if kernel is not None and any(marks):
            return form.dereferencing(kernel, [marks[port] for port in others]), others
        return kernel, others

    @cached_property
    def constants(self) -> dict[int, Any]:  # Any: tensors of any type
        """By number: the values that are in their slots from the beginning."""
        draft = self.draft
        values: dict[int, Any] = {}
        for node in cast("list[NodeNumber]", positions(draft.has_role(Role.CONST) & ~draft.emits).tolist()):
            known = draft.known.get(node) or [self._constant(node)]
            values.update(enumerate(known, draft.first[node]))
        return values

    def _passed_on(self, node: NodeNumber) -> Kernel:
        """The kernel of a node that passes its input on: a variable too, which has to be initialised."""
        return form.passed_on if any(self._marks(node)) else form.identity

    def _read(self, node: NodeNumber) -> Kernel:
        """The kernel of a node that passes one input on: it reads a variable where an array is asked for."""
        marked = any(self._marks(node))
        return form.dereferencing(form.identity, [True]) if marked else form.identity

    def _dereferenced(self, node: NodeNumber, kernel: Kernel) -> Kernel:
        """`kernel`, with the references that it does not ask for read first."""
        marks = self._marks(node)
        return form.dereferencing(kernel, marks) if any(marks) else kernel

    def _marks(self, node: NodeNumber) -> list[bool]:
        """By input of a node: whether it may get a variable where an array is asked for."""
        columns, flags = self.draft.columns, self.draft.may_refer
        if flags is None:
            return []
        types = columns.properties[node].input_types
        return [bool(flags[v]) and not is_ref(t) for v, t in zip(columns.inputs[node], types, strict=True)]
