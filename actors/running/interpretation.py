"""A graph prepared for the reference executor: consumers, initial counts of inputs, and a kernel for each node.

    y = a + a           consumers of a      [(y, port 0, output 0), (y, port 1, output 0)]
                        initial count       a 0: it is a root; y 2
    m = Merge(p, q)     initial count       1, and 2 more for each control input

It is made once for a placed graph, cut or not, and shared by all steps. Nodes are numbered as in `OrderedGraph`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph.analysis.control_flow import build_control_flow_info
from ...graph.analysis.levels import frame_name
from ...graph.analysis.transfers import transfer_of
from ...graph.dtypes import is_ref
from ...graph.ops.record import NodeClass
from ...rendezvous.key import frame_text
from ..plans import instructions as form
from ..plans.binding import check_complete
from ..plans.columns import columns_of
from ..plans.keys import stem_of
from ..plans.levels import located
from ..plans.roles import Role, role_of

if TYPE_CHECKING:
    from ...devices.kernels.registry import Kernel
    from ...graph.graph import Graph
    from ..plans.binding import Binder
    from .pending import PendingCall


class Interpretation:
    """A placed graph with what the reference executor looks up at run time."""

    def __init__(self, graph: Graph, binders: Mapping[str, Binder]) -> None:
        """Binds each node to a kernel of its device. The binder notes ops without one; `interpret` raises for them."""
        self.graph = graph
        columns = columns_of(graph)
        self.ids = columns.ids
        self.devices = [graph.assigned_device(node) for node in columns.ids]
        self.names, self.properties = columns.names, list(map(graph.node_properties, columns.ids))
        self.roles = [role_of(p.op_def.name) for p in self.properties]
        self.frame_ops = {
            node: self.properties[node].op_def.record.node_class
            for node, role in enumerate(self.roles)
            if role is Role.FRAME
        }
        enters = [node for node, node_class in self.frame_ops.items() if node_class is NodeClass.ENTER]
        self.num_enters = Counter(frame_name(self.properties[node]) for node in enters)
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
        is_deferred = {device: located(graph, binder.is_deferred) for device, binder in binders.items()}
        self.deferred = {
            node
            for node, device in enumerate(self.devices)
            if self.roles[node] is Role.COMPUTE and is_deferred[device](self.properties[node])
        }
        self._stems: dict[int, str] = {}
        self._kernels = [self._kernel(node, binders[device]) for node, device in enumerate(self.devices)]

    def num_inputs(self, node: int) -> int:
        """Number of data inputs; control inputs do not count."""
        return len(self.properties[node].input_types)

    def num_outputs(self, node: int) -> int:
        """Number of data outputs."""
        return len(self.properties[node].output_types)

    def key(self, node: int, frame_name: str, iteration: int) -> str:
        """The key of a Send or Recv in one iteration, with the name of the frame, which both ends can compute."""
        stem = self._stems.get(node)
        if stem is None:
            stem = self._stems[node] = stem_of(transfer_of(self.properties[node]))
        return stem + frame_text(frame_name or 0, iteration)

    def read(self, node: int, port: int, value: Any) -> Any:
        """The value that a node gets for an input: for a variable its array, unless the input is a reference.

        Raises FailedPreconditionError for an uninitialised variable.
        """
        return value if is_ref(self.properties[node].input_types[port]) else form.read(value)

    def outputs(self, node: int, inputs: list[Any]) -> list[Any]:
        """Computes the outputs of a live node; missing inputs of a Merge are None."""
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
        """Starts a live node of `deferred`, whose outputs come later."""
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
    """Prepares a graph with loops. Raises UnimplementedError for ops without kernel, and the errors of bad loops."""
    build_control_flow_info(graph)  # for its errors
    interpretation = Interpretation(graph, binders)
    check_complete(binders.values())
    return interpretation


def _nothing() -> None:
    """The kernel of NoOp and other nodes without outputs; Send, Recv, _Arg and _Retval never call it."""
