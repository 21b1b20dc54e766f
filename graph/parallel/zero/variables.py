"""Which variables can be cut into shards, and why others stay whole.

w   ResourceApplyAdam(w, m, v, ..., g), ReadVariableOp(w), AssignVariableOp(w, initial)      shards, with m and v
t   ResourceScatterSub(t, indices, rows)                                                     whole: updated by rows
s   a step counter                                                                           whole: one element
u   PartitionedCall(u)                                                                       whole: who knows
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from ...dtypes import DataType, Shape, is_ref
from ...edge_ends import Output
from ...ops.properties import NodeProperties
from ...ops.record import NodeClass, ReadsHandle, State
from ..value_flow import ValueFlow, is_handle


@dataclass(eq=False, slots=True)
class ShardedVariable:
    """A variable of shards.

    `updates` write it, in the order in which they run; `assigns` write it outside the step: initial and restored
    values. `read_nodes` get its value: read nodes of a resource, consumers of a reference.
    """

    node: int
    name: str
    shape: tuple[int, ...]
    dtype: DataType
    is_reference: bool
    updates: list[int] = field(default_factory=list)
    assigns: list[int] = field(default_factory=list)
    read_nodes: list[int] = field(default_factory=list)
    is_parameter: bool = False
    """the loss or its gradients depend on it"""


class FoundVariables(NamedTuple):
    """Variables of shards by node; by name why others stay whole."""

    sharded: dict[int, ShardedVariable]
    whole: dict[str, str]


def find_variables(
    flow: ValueFlow,
    shape: Callable[[Output], Shape],
    updates: Sequence[int],
    before: Collection[int],
    region: Collection[int],
    among: Collection[int] | None = None,
) -> FoundVariables:
    """The variables that `updates` write, as far as they are `among` some.

    `shape` gives shapes, `before` is what loss and gradients depend on, `region` what else updates depend on.
    """
    return _Finder(flow, shape, updates, set(before), region, among).run()


class _Finder:
    """One search."""

    def __init__(
        self,
        flow: ValueFlow,
        shape: Callable[[Output], Shape],
        updates: Sequence[int],
        before: set[int],
        region: Collection[int],
        among: Collection[int] | None,
    ) -> None:
        self._among = among
        self._flow = flow
        self._shape = shape
        self._updates = updates
        self._before = before
        self._region = region
        self._found: dict[int, ShardedVariable] = {}
        self._whole: dict[str, str] = {}

    def run(self) -> FoundVariables:
        """The variables that are left when none of them is wrong: an update may write several."""
        for update in self._updates:
            for port in _handle_ports(self._kind(update)):
                self._note_update(update, self._flow.sources[update][port][0])
        for variable in self._found.values():
            self._note_uses(variable)
        while True:
            reasons = {n: why for n, variable in self._found.items() if (why := self._why_whole(variable))}
            if not reasons:
                return FoundVariables(self._found, self._whole)
            for node, why in reasons.items():
                self._whole[self._found.pop(node).name] = why

    def _kind(self, node: int) -> NodeProperties:
        return self._flow.graph.node_properties(node)

    def _name(self, node: int) -> str:
        return self._flow.graph.node_name(node)

    def _note_update(self, update: int, node: int) -> None:
        if node not in self._found:
            kind, name = self._kind(node), self._name(node)
            record = kind.op_def.record
            shape: Shape = kind.attrs.get("shape")
            if self._among is not None and node not in self._among:
                self._whole[name] = "it is shared out over other axes"
            elif not record.handle_shape_attr and record.node_class is not NodeClass.VARIABLE:
                self._whole[name] = f"{kind.op} passes on its handle"
            elif shape is None or None in shape:
                self._whole[name] = "its shape is open"
            elif prod(size or 0 for size in shape) < 2:
                self._whole[name] = "it has one element"
            else:
                whole = tuple(size or 0 for size in shape)
                is_reference = is_ref(kind.output_types[0])
                self._found[node] = ShardedVariable(node, name, whole, kind.attrs["dtype"], is_reference)
        if node in self._found and update not in self._found[node].updates:
            self._found[node].updates.append(update)

    def _note_uses(self, variable: ShardedVariable) -> None:
        """Fills in who reads and assigns a variable."""
        for consumer, port in self._flow.readers[variable.node]:
            kind = self._kind(consumer)
            record = kind.op_def.record
            if consumer in variable.updates:
                continue
            if record.reads_handle is ReadsHandle.VALUE or not is_handle(kind.input_types[port]):
                variable.read_nodes.append(consumer)
            elif record.updates is not None and len(kind.input_types) == 2:
                variable.assigns.append(consumer)
        variable.is_parameter = any(node in self._before for node in variable.read_nodes)

    def _why_whole(self, variable: ShardedVariable) -> str:
        """Why a variable cannot be cut; "" if it can."""
        why = next((why for u in variable.updates if (why := self._why_not_elementwise(u, variable))), "")
        if why:
            return why
        known = {*variable.updates, *variable.assigns, *variable.read_nodes}
        for consumer, _ in self._flow.readers[variable.node]:
            if consumer not in known and not self._is_harmless(consumer):
                return f"{self._name(consumer)!r} ({self._kind(consumer).op}) uses it"
        for node in variable.read_nodes if variable.is_reference and variable.is_parameter else ():
            if node in self._region and not self._kind(node).op_def.record.passes_on:
                return f"{self._name(node)!r} ({self._kind(node).op}) reads it without an Identity between"
        for node in variable.assigns:
            if node in self._before:
                return f"{self._name(node)!r} assigns it before its gradient is computed"
        return ""

    def _is_harmless(self, consumer: int) -> bool:
        """Whether a user of a handle asks for no value and no shape: whether it is initialised, or to destroy it."""
        kind = self._kind(consumer)
        record = kind.op_def.record
        if record.state is not State.VARIABLE or record.updates is not None:
            return False
        return not kind.output_types or kind.output_types[0] is DataType.BOOL

    def _why_not_elementwise(self, update: int, variable: ShardedVariable) -> str:
        kind, name = self._kind(update), self._name(update)
        if kind.op_def.record.indices_input >= 0:
            return f"{name!r} ({kind.op}) updates it by rows"
        for port, source in enumerate(self._flow.sources[update]):
            shape = self._shape(source)
            if is_handle(kind.input_types[port]):
                other = self._found.get(source[0])
                if other is None or other.shape != variable.shape:
                    return f"{name!r} also updates {self._name(source[0])!r}, which has another shape or stays whole"
            elif shape != variable.shape and (shape is None or any(size != 1 for size in shape)):
                return f"input {port} of {name!r} ({kind.op}) has not the shape of the variable"
        return ""


def _handle_ports(kind: NodeProperties) -> Iterable[int]:
    return (port for port, dtype in enumerate(kind.input_types) if is_handle(dtype))
