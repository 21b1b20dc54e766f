"""The graph: nodes and edges with the ids, orders and quirks of TensorFlow's core graph.

`Columns` stores it; this file adds views (`Node`, `Edge`) and single changes. Names are not checked for uniqueness
here: the importer does that. Single changes keep EdgeSet orders, which generated names depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError, OutOfRangeError, shown
from .arrays import Flags
from .columns import CONTROL_SLOT, REMOVED, SINK_ID, SOURCE_ID, Columns
from .exporter import requested_inputs, to_graph_def
from .node import Edge, Node
from .ops.properties import NodeProperties, properties_of
from .ops.record import NodeClass
from .ops.summaries import node_for_error
from .printer import graph_html, graph_text
from .protos import FunctionDefLibrary, GraphDef


class Graph(Columns):
    """A mutable dataflow graph. Not safe to share between threads while it changes."""

    def __init__(self, library: FunctionDefLibrary | None = None) -> None:
        """An empty graph: source, sink and the edge between them; `library` holds the functions nodes may call."""
        super().__init__()
        if library is not None and (library.function or library.gradient):
            self.library = FunctionDefLibrary.FromString(library.SerializeToString())
            self.versions = self.versions.with_functions()

    @property
    def source(self) -> Node:
        """Node 0."""
        return Node(self, SOURCE_ID)

    @property
    def sink(self) -> Node:
        """Node 1."""
        return Node(self, SINK_ID)

    def node(self, node_id: int) -> Node:
        """The node with that id; InvalidArgumentError when there is none."""
        view = Node(self, node_id)
        self.check_node(view)
        return view

    def edge(self, edge_id: int) -> Edge:
        """The edge with that id; InvalidArgumentError when there is none."""
        if not 0 <= edge_id < len(self._src) or self._src[edge_id] == REMOVED:
            raise InvalidArgumentError(f"the graph has no edge with id {edge_id}")
        return Edge(self, edge_id)

    def nodes(self) -> Iterator[Node]:
        """Live nodes by ascending id, source and sink first."""
        return (Node(self, i) for i in self.node_ids())

    def op_nodes(self) -> Iterator[Node]:
        """Live nodes by ascending id, without source and sink."""
        return (Node(self, i) for i in self.node_ids() if i > SINK_ID)

    def edges(self) -> Iterator[Edge]:
        """Live edges by ascending id."""
        return (Edge(self, e) for e, src in enumerate(self._src) if src != REMOVED)

    def node_classes(self) -> set[NodeClass]:
        """The classes of the ops of its nodes."""
        return {kind.op_def.record.node_class for kind in self.distinct_properties()[0]}

    def flags(self, holds: Callable[[NodeProperties], bool]) -> Flags:
        """By node id whether `holds` is true of the node's kind; False for removed nodes."""
        kinds, kind_of = self.distinct_properties()
        flags: Flags = np.array([*map(holds, kinds), False], np.bool_)[kind_of]
        return flags

    def has_columns_of(self, other: Graph) -> bool:
        """Whether two graphs have the same nodes and edges by id; devices may differ, and details are not compared."""
        return (
            self._details is other._details is None
            and self._names == other._names
            and self._properties == other._properties
            and self._src == other._src
            and self._src_output == other._src_output
            and self._dst == other._dst
            and self._dst_input == other._dst_input
        )

    def find_node(self, name: str) -> Node | None:
        """The node of that name (the last one added if there are several), or None."""
        node_id = self.find_id(name)
        return None if node_id is None else Node(self, node_id)

    def check_node(self, node: Node) -> None:
        """Raises InvalidArgumentError unless `node` is a live node of this graph."""
        if not isinstance(node, Node):
            raise InvalidArgumentError("Node is null" if node is None else f"{shown(node)} is no node of a graph")
        if node.graph is not self:
            raise InvalidArgumentError(
                f"Node with id {node.id} is different from the passed in node. Does it belong to a different graph?"
            )
        if node.id < 0:
            raise InvalidArgumentError(f"node id {node.id} is less than zero")
        if node.id >= len(self._names):
            raise InvalidArgumentError(f"node id {node.id} is >= than number of nodes in graph {len(self._names)}")
        if self._names[node.id] is None:
            raise InvalidArgumentError(f"node id {node.id} was removed from the graph")

    def requested_inputs(self, node_id: int) -> list[str]:
        """The input strings of the NodeDef that a node was made from, or those that its edges determine."""
        return requested_inputs(self, node_id)

    def add_node(
        self,
        name: str,
        op: str,
        attrs: Mapping[str, Any] | None = None,
        *,
        device: str = "",
        inputs: Iterable[str] = (),
    ) -> Node:
        """Adds a node from an op and attr values (defaults are filled in); `inputs` are kept as text, no edge is made.

        Raises NotFoundError for an unknown op, InvalidArgumentError for attrs that do not determine the port types.
        """
        return self.add_node_with(name, properties_of(op, attrs or {}), device=device, inputs=inputs)

    def add_node_with(
        self, name: str, properties: NodeProperties, *, device: str = "", inputs: Iterable[str] = ()
    ) -> Node:
        """Adds a node with properties that exist already; `inputs` are only kept as text."""
        node_id = len(self._names)
        self.extend_nodes([name], [properties], [self.intern_device(device)])
        strings = list(inputs)
        if strings:
            self._inputs[node_id] = strings
        return Node(self, node_id)

    def request_device(self, node_id: int, name: str) -> None:
        """Requests a device for one node, as a pass before placement does; "" for any."""
        self._requested[node_id] = self.intern_device(name)

    def set_requested_inputs(self, node_id: int, inputs: list[str]) -> None:
        """Stores the input strings of a node whose edges do not determine them."""
        self._inputs[node_id] = inputs

    def add_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> Edge:
        """Adds an edge; source, sink and slot -1 make it a control edge, and then both slots must be -1.

        A second edge into one input port is accepted here; `Node.input_edges` and the checkers refuse it.
        """
        edge_id = len(self._src)
        self._src.append(src.id)
        self._src_output.append(src_output)
        self._dst.append(dst.id)
        self._dst_input.append(dst_input)
        if self._out is not None:
            self._out.add(src.id, edge_id)
        if self._in is not None:
            self._in.add(dst.id, edge_id)
        return Edge(self, edge_id)

    def add_control_edge(self, src: Node, dst: Node, allow_duplicates: bool = False) -> Edge | None:
        """Adds a control edge and appends it to `dst`'s input strings; None when there is one already.

        With `allow_duplicates` the edge is added in any case, and the input strings stay.
        """
        if not allow_duplicates:
            for edge in self.in_edge_ids(dst.id):
                if self._dst_input[edge] == CONTROL_SLOT and self._src[edge] == src.id:
                    return None
            written = self._inputs.get(dst.id)
            if written is not None and src.is_op and dst.is_op and "^" + src.name not in written:
                written.append("^" + src.name)
        return self.add_edge(src, CONTROL_SLOT, dst, CONTROL_SLOT)

    def remove_control_edge(self, edge: Edge) -> None:
        """Removes a control edge, also from the consumer's input strings."""
        src, dst = edge.src, edge.dst
        written = self._inputs.get(dst.id, [])
        if src.is_op and dst.is_op and "^" + src.name in written:
            written.remove("^" + src.name)
        self.remove_edge(edge)

    def remove_edge(self, edge: Edge) -> None:
        """Removes an edge; input strings of its consumer stay."""
        src, _, dst, _ = self.edge_ends(edge.id)
        self.out_edge_ids(src)
        self.in_edge_ids(dst)
        if self._out is not None and self._in is not None:
            self._out.remove(src, edge.id)
            self._in.remove(dst, edge.id)
        self._src[edge.id] = REMOVED
        self._num_removed_edges += 1

    def remove_node(self, node: Node) -> None:
        """Removes a node with its edges; InvalidArgumentError for source and sink."""
        self.check_node(node)
        if not node.is_op:
            raise InvalidArgumentError(f"{node.name} belongs to every graph and cannot be removed")
        for edge in node.in_edges() + node.out_edges():
            if self._src[edge.id] != REMOVED:
                self.remove_edge(edge)
        self._forget([node.id])

    def update_edge(self, new_src: Node, new_src_output: int, dst: Node, dst_input: int) -> Edge:
        """Makes `new_src:new_src_output` feed input `dst_input` of `dst` instead of its present source.

        The new edge gets a new id. Raises OutOfRangeError for ports that do not exist, InvalidArgumentError when
        nothing feeds that input.
        """
        if not 0 <= new_src_output < new_src.num_outputs:
            raise OutOfRangeError(
                f"Node '{new_src.name}' (type: '{new_src.op}', num of outputs: {new_src.num_outputs}) "
                f"does not have output {new_src_output}"
            )
        if not 0 <= dst_input < dst.num_inputs:
            raise OutOfRangeError(
                f"Node '{dst.name}' (type: '{dst.op}', num of inputs: {dst.num_inputs}) does not have input {dst_input}"
            )
        old = [edge for edge in dst.in_edges() if edge.dst_input == dst_input]
        if not old:
            raise InvalidArgumentError(f"Couldn't find edge to {node_for_error(dst.name)}")
        inputs = self.requested_inputs(dst.id)
        data = [text for text in inputs if not text.startswith("^")]
        data += [""] * (dst_input + 1 - len(data))
        data[dst_input] = f"{new_src.name}:{new_src_output}"
        self.remove_edge(old[0])
        self._inputs[dst.id] = data + [text for text in inputs if text.startswith("^")]
        return self.add_edge(new_src, new_src_output, dst, dst_input)

    def new_name(self, prefix: str) -> str:
        """`prefix/_N` with a counter that all prefixes of this graph share; existing names are not checked."""
        name = f"{prefix}/_{self._name_counter}"
        self._name_counter += 1
        return name

    def to_graph_def(self) -> GraphDef:
        """The GraphDef of all nodes by ascending id; raises as `exporter.to_graph_def`."""
        return self.to_graph_def_sub_range(SINK_ID + 1)

    def to_graph_def_sub_range(self, from_node_id: int) -> GraphDef:
        """The GraphDef of the nodes with an id of at least `from_node_id`."""
        return to_graph_def(self, from_node_id)

    def SerializeToString(self) -> bytes:  # noqa: N802 - named by protobuf, whose messages it may stand in for
        """The GraphDef as bytes, so that a graph is accepted wherever a GraphDef is."""
        return self.to_graph_def().SerializeToString()

    def __str__(self) -> str:
        """One line per node, in the form that `printer` describes."""
        return graph_text(self)

    def __repr__(self) -> str:
        return f"<Graph of {self.num_nodes} nodes and {self.num_edges} edges>"

    def _repr_html_(self) -> str:
        return graph_html(self)
