"""Where a builder stores its nodes: in the messages of a GraphDef, or in the columns of a graph.

A sink gets checked nodes with all their attrs, in the order in which they are made, and keeps names unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ...errors import InvalidArgumentError
from ..attrs import decode
from ..columns import CONTROL_SLOT
from ..graph import Graph
from ..ops.properties import NodeProperties
from ..ops.registry import PRODUCER, OpSignature
from ..ops.type_inference import input_output_types
from ..protos import GraphDef, NodeDef
from ..suggestions import meant
from .handles import Maker, Operation, Tensor
from .node_builder import properties_of_node_def

Arguments = Sequence[Tensor | list[Tensor]]
"""one entry per argument of an op: a tensor, or a list where the argument takes several"""


class Sink(Protocol):
    """Stores nodes."""

    def unique_name(self, wanted: str) -> str:
        """`wanted`, with "_1", "_2" ... appended if it is in use."""

    def add(
        self, maker: Maker, node: NodeDef, signature: OpSignature, inputs: Arguments, control: Iterable[str]
    ) -> Operation:
        """Stores a node that reads `inputs` and waits for `control`; returns its handle, which belongs to `maker`."""

    def operation(self, maker: Maker, name: str) -> Operation:
        """The node of that name; InvalidArgumentError when there is none."""

    def close_loop(self, merge: str, port: int, tensor: Tensor) -> None:
        """Connects `tensor` to input `port` of an existing Merge."""


class MessageSink:
    """Stores nodes as messages of a GraphDef of this program's version."""

    def __init__(self) -> None:
        self.graph_def = GraphDef()
        self.graph_def.versions.producer = PRODUCER
        self._operations: dict[str, Operation] = {}
        self._positions: dict[str, int] = {}
        self._next_suffix: dict[str, int] = {}

    def unique_name(self, wanted: str) -> str:
        """`wanted`, with "_1", "_2" ... appended if it is in use; the result counts as used from then on."""
        number = self._next_suffix.get(wanted, 0)
        self._next_suffix[wanted] = number + 1
        if number == 0:
            return wanted
        candidate = f"{wanted}_{number}"
        return candidate if candidate not in self._next_suffix else self.unique_name(wanted)

    def add(
        self, maker: Maker, node: NodeDef, signature: OpSignature, inputs: Arguments, control: Iterable[str]
    ) -> Operation:
        """Appends the message; its input strings are set already."""
        decoded = {key: decode(value) for key, value in node.attr.items() if not value.HasField("tensor")}
        self._positions[node.name] = len(self.graph_def.node)
        self.graph_def.node.append(node)
        operation = Operation(maker, node.name, node.op, input_output_types(signature, decoded)[1])
        self._operations[node.name] = operation
        return operation

    def replace(self, maker: Maker, graph: Graph) -> None:
        """Takes the nodes and functions of `graph` in place of its own; names that were used stay used."""
        self.graph_def = graph.to_graph_def()
        self._positions = {node.name: position for position, node in enumerate(self.graph_def.node)}
        self._operations = {
            node.name: Operation(maker, node.name, node.op, graph.node_properties(node.id).output_types)
            for node in map(graph.find_node, self._positions)
            if node is not None
        }
        for name in self._positions:
            self._next_suffix.setdefault(name, 1)

    def operation(self, maker: Maker, name: str) -> Operation:
        """The node of that name; InvalidArgumentError when there is none."""
        if name not in self._operations:
            hint = meant(name, self._operations)
            raise InvalidArgumentError(f"{name!r} is no node of this graph yet{hint or '; make it first'}")
        return self._operations[name]

    def close_loop(self, merge: str, port: int, tensor: Tensor) -> None:
        """Sets the input string that was left open."""
        self.graph_def.node[self._positions[merge]].input[port] = tensor.input_text


class ColumnSink:
    """Stores nodes and edges in columns until `flush` adds them to a graph in bulk.

    Until then nothing else may add nodes to the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._ids: dict[str, int] = {}  # ids of nodes that are new or have been used as inputs
        self._next_suffix: dict[str, int] = {}
        self._first_new = graph.num_node_ids
        self._names: list[str] = []
        self._properties: list[NodeProperties] = []
        self._devices: list[int] = []
        self._edges: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])

    def flush(self) -> None:
        """Adds the waiting nodes and edges to the graph."""
        if self._names:
            self.graph.extend_nodes(self._names, self._properties, self._devices)
        if self._edges[0]:
            self.graph.extend_edges(*self._edges)
        for column in (self._names, self._properties, self._devices, *self._edges):
            column.clear()
        self._first_new = self.graph.num_node_ids

    def unique_name(self, wanted: str) -> str:
        """`wanted`, with "_1", "_2" ... appended if the graph has a node of that name."""
        candidate = wanted
        if wanted in self._ids or self.graph.find_id(wanted) is not None:
            number = self._next_suffix.get(wanted, 1)
            candidate = f"{wanted}_{number}"
            while candidate in self._ids or self.graph.find_id(candidate) is not None:
                number += 1
                candidate = f"{wanted}_{number}"
            self._next_suffix[wanted] = number + 1
        return candidate

    def add(
        self, maker: Maker, node: NodeDef, signature: OpSignature, inputs: Arguments, control: Iterable[str]
    ) -> Operation:
        """Appends the first node of its kind."""
        properties = properties_of_node_def(node, signature)
        tensors = [item for value in inputs for item in (value if isinstance(value, list) else (value,))]
        return self.add_alike(maker, node.name, properties, self.graph.intern_device(node.device), tensors, control)

    def add_alike(
        self,
        maker: Maker,
        name: str,
        properties: NodeProperties,
        device: int,
        inputs: Iterable[Tensor],
        control: Iterable[str],
    ) -> Operation:
        """Appends a node that shares the `properties` of an earlier one; `device` comes from `intern_device`."""
        ids = self._ids
        node_id = ids[name] = self._first_new + len(self._names)
        self._names.append(name)
        self._properties.append(properties)
        self._devices.append(device)
        src, src_output, dst, dst_input = self._edges
        for port, tensor in enumerate(inputs):
            source = tensor.node
            if source:  # else it is a back edge, which `close_loop` adds
                src.append(ids[source] if source in ids else self.id_of(source))
                src_output.append(tensor.port)
                dst.append(node_id)
                dst_input.append(port)
        for source in control:
            self.edge(self.id_of(source), CONTROL_SLOT, node_id, CONTROL_SLOT)
        return Operation(maker, name, properties.op_def.name, properties.output_types)

    def edge(self, src: int, src_output: int, dst: int, dst_input: int) -> None:
        """Appends an edge between existing nodes."""
        for column, value in zip(self._edges, (src, src_output, dst, dst_input), strict=True):
            column.append(value)

    def close_loop(self, merge: str, port: int, tensor: Tensor) -> None:
        """Appends the edge that was left out."""
        self.edge(self.id_of(tensor.node), tensor.port, self.id_of(merge), port)

    def id_of(self, name: str) -> int:
        """The id of the node of that name; InvalidArgumentError when the graph has none."""
        node_id = self._ids.get(name)
        if node_id is None:
            node_id = self.graph.find_id(name)
            if node_id is None:
                raise InvalidArgumentError(f"{name!r} is no node of this graph")
            self._ids[name] = node_id
        return node_id

    def properties(self, name: str) -> NodeProperties:
        """Op, attrs and port types of the node of that name."""
        node_id = self.id_of(name)
        if node_id >= self._first_new:
            return self._properties[node_id - self._first_new]
        return self.graph.node_properties(node_id)

    def operation(self, maker: Maker, name: str) -> Operation:
        """The node of that name; InvalidArgumentError when the graph has none."""
        properties = self.properties(name)
        return Operation(maker, name, properties.op, properties.output_types)
