"""Nodes and edges as light views on the columns of a Graph.

A view stores the graph and an id only, so two views of one node are equal and hash alike, and a view sees every later
change. Views of removed nodes or edges must not be used any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InternalError, InvalidArgumentError, NotFoundError
from .attrs import encode, guessed_type
from .columns import CONTROL_SLOT, SINK_ID, SOURCE_ID
from .dtypes import DataType
from .ops.properties import Attrs, NodeProperties
from .ops.record import CONTROL_FLOW, NodeClass
from .ops.registry import OpSignature

if TYPE_CHECKING:
    from .graph import Graph


class Edge:
    """A view of one edge: output `src_output` of `src` feeds input `dst_input` of `dst`; both -1 on control edges."""

    __slots__ = ("graph", "id")

    def __init__(self, graph: Graph, edge_id: int) -> None:
        self.graph = graph
        self.id = edge_id

    @property
    def src(self) -> Node:
        """The node the edge leaves."""
        return Node(self.graph, self.graph.edge_ends(self.id)[0])

    @property
    def src_output(self) -> int:
        """The output port the edge leaves, -1 for control."""
        return self.graph.edge_ends(self.id)[1]

    @property
    def dst(self) -> Node:
        """The node the edge enters."""
        return Node(self.graph, self.graph.edge_ends(self.id)[2])

    @property
    def dst_input(self) -> int:
        """The input port the edge enters, -1 for control."""
        return self.graph.edge_ends(self.id)[3]

    @property
    def is_control(self) -> bool:
        """Whether the edge orders execution only."""
        return self.graph.edge_ends(self.id)[1] == CONTROL_SLOT

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edge) and self.id == other.id and self.graph is other.graph

    def __hash__(self) -> int:
        return hash((id(self.graph), self.id))

    def __repr__(self) -> str:
        src, src_output, dst, dst_input = self.graph.edge_ends(self.id)
        names = self.graph.node_name
        return f"<Edge {self.id} {names(src)}:{src_output} -> {names(dst)}:{dst_input}>"


class Node:
    """A view of one node of a graph."""

    __slots__ = ("graph", "id")

    def __init__(self, graph: Graph, node_id: int) -> None:
        self.graph = graph
        self.id = node_id

    @property
    def name(self) -> str:
        """The node's name; unique in every graph that came from a GraphDef."""
        return self.graph.node_name(self.id)

    @property
    def properties(self) -> NodeProperties:
        """Op, attrs and port types, shared with all nodes of the same kind."""
        return self.graph.node_properties(self.id)

    @property
    def op(self) -> str:
        """Name of the op."""
        return self.properties.op_def.name

    @property
    def op_def(self) -> OpSignature:
        """Signature of the op."""
        return self.properties.op_def

    @property
    def attrs(self) -> Attrs:
        """Attrs by name, decoded when read."""
        return self.properties.attrs

    def attr(self, name: str) -> Any:
        """The decoded value of an attr; NotFoundError when the node has none of that name."""
        if name not in self.attrs:
            raise NotFoundError(
                f"No attr named '{name}' in NodeDef: {{{{node {self.name}}}}}", node=self.name, op=self.op
            )
        return self.attrs[name]

    def add_attr(self, name: str, value: Any, type_string: str = "") -> None:
        """Sets an attr of this node alone (nodes that shared its properties keep theirs).

        `value` is an AttrValue or a Python value. A Python value is encoded as the type that the op declares, else as
        `type_string`, else as the type that it looks like. Raises InvalidArgumentError, with the node unchanged, for a
        value that does not fit and for an unknown `type_string`.
        """
        declared = self.op_def.attrs.get(name)
        wanted = declared.type if declared else type_string or guessed_type(value)
        try:
            message = encode(value, wanted)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"Attr '{name}': {error.message}", node=self.name, op=self.op) from None
        self.graph.set_node_properties(self.id, self.properties.with_attr(name, message))

    def clear_attr(self, name: str) -> None:
        """Removes an attr from this node alone."""
        self.graph.set_node_properties(self.id, self.properties.without_attr(name))

    @property
    def requested_device(self) -> str:
        """The device the graph's author asked for, "" for any."""
        return self.graph.requested_device(self.id)

    @requested_device.setter
    def requested_device(self, name: str) -> None:
        self.graph.request_device(self.id, name)

    @property
    def assigned_device(self) -> str:
        """The device the placer chose, "" before placement."""
        return self.graph.assigned_device(self.id)

    @assigned_device.setter
    def assigned_device(self, name: str) -> None:
        self.graph.assign_device(self.id, name)

    @property
    def device(self) -> str:
        """The assigned device, or the requested one while none is assigned."""
        return self.assigned_device or self.requested_device

    @property
    def input_types(self) -> tuple[DataType, ...]:
        """Element types of the data inputs, references marked."""
        return self.properties.input_types

    @property
    def output_types(self) -> tuple[DataType, ...]:
        """Element types of the outputs, references marked."""
        return self.properties.output_types

    @property
    def num_inputs(self) -> int:
        """Number of data inputs."""
        return len(self.properties.input_types)

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.properties.output_types)

    @property
    def cost_id(self) -> int:
        """The id by which cost models know the node: its own, or that of the node it was copied from."""
        return self.graph.cost_id(self.id)

    @property
    def requested_inputs(self) -> list[str]:
        """The input strings of the NodeDef that this node was made from, kept up to date when control edges change."""
        return self.graph.requested_inputs(self.id)

    @property
    def node_class(self) -> NodeClass:
        """The class of the op, by which the runtime treats some ops specially."""
        return self.properties.op_def.record.node_class

    @property
    def is_source(self) -> bool:
        """Whether it is the node before all others, which every graph has."""
        return self.id == SOURCE_ID

    @property
    def is_sink(self) -> bool:
        """Whether it is the node after all others, which every graph has."""
        return self.id == SINK_ID

    @property
    def is_op(self) -> bool:
        """Whether this is neither source nor sink."""
        return self.id > SINK_ID

    @property
    def is_send(self) -> bool:
        """Whether the node sends to a rendezvous."""
        return self.properties.op_def.record.is_send

    @property
    def is_recv(self) -> bool:
        """Whether the node receives from a rendezvous."""
        return self.properties.op_def.record.is_recv

    @property
    def is_control_flow(self) -> bool:
        """Whether the op is Switch, Merge, Enter, Exit or NextIteration."""
        return self.node_class in CONTROL_FLOW

    def in_edges(self) -> list[Edge]:
        """Edges that enter the node, in EdgeSet order (see `adjacency`)."""
        return [Edge(self.graph, e) for e in self.graph.in_edge_ids(self.id)]

    def out_edges(self) -> list[Edge]:
        """Edges that leave the node, in EdgeSet order (see `adjacency`)."""
        return [Edge(self.graph, e) for e in self.graph.out_edge_ids(self.id)]

    def input_edge(self, index: int) -> Edge:
        """The edge into data input `index`.

        Raises InvalidArgumentError for an index out of range and NotFoundError when nothing is connected.
        """
        if not 0 <= index < self.num_inputs:
            raise InvalidArgumentError(
                f"Invalid input_edge index: {index}, Node {self.name} only has {self.num_inputs} inputs.",
                node=self.name,
            )
        for edge in self.in_edges():
            if edge.dst_input == index:
                return edge
        raise NotFoundError(f"Could not find input edge {index} for {self.name}", node=self.name, op=self.op)

    def input_edges(self) -> list[Edge]:
        """The edges into all data inputs, by port.

        Raises InvalidArgumentError when one is missing and InternalError for two edges into one port.
        """
        edges: list[Edge | None] = [None] * self.num_inputs
        for edge in self.in_edges():
            if edge.is_control:
                continue
            if edges[edge.dst_input] is not None:
                raise InternalError(f"Duplicate edge input number: {edge.dst_input}", node=self.name, op=self.op)
            edges[edge.dst_input] = edge
        for index, maybe in enumerate(edges):
            if maybe is None:
                raise InvalidArgumentError(f"Missing edge input number: {index}", node=self.name, op=self.op)
        return [edge for edge in edges if edge is not None]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.id == other.id and self.graph is other.graph

    def __hash__(self) -> int:
        return hash((id(self.graph), self.id))

    def __repr__(self) -> str:
        return f"<Node {self.id} {self.name} = {self.op}>"
