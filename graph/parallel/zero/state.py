"""Variables of shards: those that were whole become smaller, or get one beside them.

Optimizer state, and with stage 3 parameters too, become variables of the shape of a shard. What is assigned to them,
initial and restored values, is cut. With stages 1 and 2 a parameter stays whole on every replica, and updates work on a
variable beside it:

    w            read by the forward and the backward pass
    w/shard      = rows of w      at the begin of the updates, so that what was restored into w counts
    updates      write w/shard
    w            = all shards     when the last update has run
"""

from __future__ import annotations

from typing import Any

from ...builder.handles import Tensor
from ...dtypes import base_type
from ...edge_ends import Output
from ...ops.record import NodeClass
from .collectives import ShardCollectives
from .edits import Edits
from .layout import FIRST, Cut, Patch
from .region import ShardRegion
from .variables import ShardedVariable


class StateShards:
    """The variables of shards of one step; `keeps_parameters` says that parameters stay whole."""

    def __init__(
        self, region: ShardRegion, edits: Edits, collectives: ShardCollectives, *, keeps_parameters: bool
    ) -> None:
        self._region = region
        self._edits = edits
        self._collectives = collectives
        self._keeps_parameters = keeps_parameters
        self.handles: dict[int, Tensor] = {}
        """the variable of shards, by variable"""
        self.initial: list[str] = []
        """nodes with shards of what is assigned outside the step"""
        self._loads: dict[int, str] = {}

    def is_beside(self, variable: ShardedVariable) -> bool:
        """Whether the variable stays whole, with one of shards beside it."""
        return self._keeps_parameters and variable.is_parameter

    def rewrite(self, variable: ShardedVariable) -> None:
        """Makes the variable of shards."""
        with self._edits.beside(variable.node):
            if self.is_beside(variable):
                self._add_beside(variable)
            else:
                self._shrink(variable)

    def _shrink(self, variable: ShardedVariable) -> None:
        cut = self._collectives.cut(variable.shape)
        self.handles[variable.node] = self._edits.tensor((variable.node, 0))
        self._edits.set_attr(variable.node, "shape", (cut.rows(FIRST),))
        self._patch_shape(variable.name, cut)
        for node in variable.assigns:
            self._edits.connect(self._initial(self._region.flow.sources[node][1], cut), node, 1)

    def _patch_shape(self, name: str, cut: Cut) -> None:
        if not cut.has_whole_parts:
            self._collectives.patches.append(Patch(name, "shape", lambda place: (cut.rows(place),)))

    def _add_beside(self, variable: ShardedVariable) -> None:
        make, cut = self._edits.make, self._collectives.cut(variable.shape)
        name, shape = f"zero/{variable.name}/variable", (cut.rows(FIRST),)
        op = "VariableV2" if variable.is_reference else "VarHandleOp"
        handle = make.op(op, name=name, dtype=variable.dtype, shape=shape, shared_name=name)[0]
        self._patch_shape(name, cut)
        whole = self.read(self._edits.tensor((variable.node, 0)), variable, f"zero/{variable.name}/before")
        rows = self._collectives.shard(whole, cut, f"zero/{variable.name}/rows")
        self.handles[variable.node] = handle
        self._loads[variable.node] = self.assigned(handle, rows, variable, f"zero/{variable.name}/load")

    def wait_for_load(self, variable: ShardedVariable, node: str) -> None:
        """Lets a node run after the variable of shards has its value of this step."""
        if variable.node in self._loads:
            self._edits.wait(self._loads[variable.node], node)

    def read(self, handle: Tensor, variable: ShardedVariable, name: str) -> Tensor:
        """The value behind a handle, or a reference."""
        make = self._edits.make
        if variable.is_reference:
            return make.op("Identity", handle, name=name)[0]
        return make.op("ReadVariableOp", handle, name=name, dtype=variable.dtype)[0]

    def assigned(self, handle: Tensor, value: Tensor, variable: ShardedVariable, name: str) -> str:
        """The node that assigns a value."""
        op, attrs = assignment(variable)
        return self._edits.make.op(op, handle, value, name=name, attrs=attrs).name

    def _initial(self, value: Output, cut: Cut) -> Tensor:
        """The shard of a value that is not part of the step; one that is the same everywhere is made small."""
        name = f"zero/{self._region.graph.node_name(value[0])}/initial"
        element = self._only_element(value)
        if element is None:
            shard = self._collectives.shard(self._edits.tensor(value), cut, name)
        else:
            rows = self._collectives.numbers(lambda place: [cut.rows(place)], f"{name}/rows")
            shard = self._edits.make.op("Fill", rows, element, name=name)[0]
        self.initial.append(shard.node)
        return shard

    def _only_element(self, value: Output) -> Tensor | None:
        """What all elements of a value are, if it is made of one."""
        kind = self._region.kind(value[0])
        if kind.op_def.record.fills:
            return self._edits.tensor(self._region.flow.sources[value[0]][1])
        if kind.op_def.record.node_class is not NodeClass.CONSTANT:
            return None
        elements = kind.attrs["value"]
        first = elements.reshape(-1)[0]
        return self._edits.make.constant(first, base_type(kind.output_types[0])) if (elements == first).all() else None


def assignment(variable: ShardedVariable) -> tuple[str, dict[str, Any]]:
    """The op, with attrs, that assigns to a variable."""
    if variable.is_reference:
        return "Assign", {"T": variable.dtype}
    return "AssignVariableOp", {"dtype": variable.dtype}
