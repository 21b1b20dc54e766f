"""A graph as the tagged-frame interpreter reads it: who consumes what, initial counts, how each node computes.

Flows in: a placed graph, cut or not, and the kernels of its devices. Flows out: an `Interpretation`, shared by all
steps. Always holds: nothing in it belongs to a step; nodes are numbered as in `Columns`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph.analysis.control_flow import build_control_flow_info
from ...graph.dtypes import is_ref
from ...graph.partition import transfer_of
from ...rendezvous.key import frame_text
from ..plans import instructions as form
from ..plans.binding import check_complete
from ..plans.columns import columns_of
from ..plans.keys import stem_of
from ..plans.roles import Role, role_of

if TYPE_CHECKING:
    from ...devices.kernels.registry import Kernel
    from ...graph.graph import Graph
    from ..plans.binding import Binder
    from .pending import PendingCall


class Interpretation:
    """See the module."""

    def __init__(self, graph: Graph, binders: Mapping[str, Binder]) -> None:
        """Binds each node to a kernel of its device; ops without one are noted in the device's binder."""
        columns = columns_of(graph)
        self.devices = [graph.assigned_device(node) for node in columns.ids]
        self.names, self.properties = columns.names, list(map(graph.node_properties, columns.ids))
        self.roles = [role_of(p.op_def.name) for p in self.properties]
        self.frame_ops = {
            node: self.properties[node].op.removeprefix("Ref")
            for node, role in enumerate(self.roles)
            if role is Role.FRAME
        }
        enters = [node for node, op in self.frame_ops.items() if op == "Enter"]
        self.num_enters = Counter(self.frame_name(node) for node in enters)
        self.consumers: list[list[tuple[int, int, int]]] = [[] for _ in self.names]
        for src, output, dst, port in zip(*(column.tolist() for column in columns.data), strict=True):
            self.consumers[src].append((dst, port, output))
        num_controls = [0] * len(self.names)
        for src, dst in zip(columns.control.src.tolist(), columns.control.dst.tolist(), strict=True):
            self.consumers[src].append((dst, -1, -1))
            num_controls[dst] += 1
        self.initial_count = [
            1 + 2 * controls if role is Role.MERGE else self.num_inputs(node) + controls
            for node, (role, controls) in enumerate(zip(self.roles, num_controls, strict=True))
        ]
        self.roots = [n for n in range(len(self.names)) if not num_controls[n] and not self.num_inputs(n)]
        self.deferred = {
            node
            for node, device in enumerate(self.devices)
            if self.roles[node] is Role.COMPUTE and binders[device].is_deferred(self.properties[node])
        }
        self._stems: dict[int, str] = {}
        self._kernels = [self._kernel(node, binders[device]) for node, device in enumerate(self.devices)]

    def num_inputs(self, node: int) -> int:
        """Number of data inputs of a node."""
        return len(self.properties[node].input_types)

    def num_outputs(self, node: int) -> int:
        """Number of outputs of a node."""
        return len(self.properties[node].output_types)

    def frame_name(self, enter: int) -> str:
        """The frame name that an Enter declares."""
        name: bytes = self.properties[enter].attrs["frame_name"]
        return name.decode()

    def parallel_iterations(self, enter: int) -> int:
        """How many iterations of its frame an Enter allows at a time."""
        return int(self.properties[enter].attrs["parallel_iterations"])

    def is_constant_enter(self, enter: int) -> bool:
        """Whether the value of an Enter goes to every iteration."""
        return bool(self.properties[enter].attrs["is_constant"])

    def key(self, node: int, frame_name: str, iteration: int) -> str:
        """The key of a transfer in one iteration; frames go by name here, both ends find the same one."""
        stem = self._stems.get(node)
        if stem is None:
            stem = self._stems[node] = stem_of(transfer_of(self.properties[node]))
        return stem + frame_text(frame_name or 0, iteration)

    def read(self, node: int, port: int, value: Any) -> Any:
        """What a node gets for an input: the array of a variable where it does not ask for a reference.

        Raises FailedPreconditionError for an uninitialised variable.
        """
        return value if is_ref(self.properties[node].input_types[port]) else form.read(value)

    def outputs(self, node: int, inputs: list[Any]) -> list[Any]:
        """The outputs of a live node from its inputs; absent inputs of a Merge are None."""
        if self.roles[node] is Role.MERGE:
            port = next(port for port, value in enumerate(inputs) if value is not None)
            return [self.read(node, port, inputs[port]), np.int32(port)]
        if self.roles[node] is Role.ALIAS:
            return [form.passed_on(inputs[0])]
        result = self._kernels[node](*[self.read(node, port, value) for port, value in enumerate(inputs)])
        count = self.num_outputs(node)
        if count == 1:
            return [result]
        return list(result) if count else []

    def start(self, node: int, call: PendingCall, *inputs: Any) -> None:
        """Starts a live node whose outputs come later (`deferred` has those)."""
        self._kernels[node](call, *[self.read(node, port, value) for port, value in enumerate(inputs)])

    def _kernel(self, node: int, binder: Binder) -> Kernel:
        properties, role = self.properties[node], self.roles[node]
        if role is Role.COMPUTE:
            return binder.kernel(self.names[node], properties)
        if role is Role.CONST:
            value = binder.constant(self.names[node], properties)
            return lambda: value
        if role is Role.SWITCH:
            return form.switch
        if role is Role.SWITCH_N:
            return form.switch_n(self.num_outputs(node))
        return form.identity if self.num_inputs(node) == 1 else _nothing


def interpret(graph: Graph, binders: Mapping[str, Binder]) -> Interpretation:
    """The interpretation of a graph with loops; UnimplementedError for ops without kernel, the errors of bad loops."""
    build_control_flow_info(graph)  # for its errors
    made = Interpretation(graph, binders)
    check_complete(binders.values())
    return made


def _nothing() -> None:
    """The kernel of nodes that only order others; transfers and arguments never call it."""
