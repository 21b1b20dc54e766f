"""The graph: nodes and edges in columns, with the ids, orders and quirks of TensorFlow's core graph.

Flows in: nodes and edges, one by one or in bulk from the importer. Flows out: views (`Node`, `Edge`), columns as numpy
arrays for whole-graph passes, a GraphDef. Always holds: node 0 is `_SOURCE`, node 1 is `_SINK`, edge 0 joins them; ids are
never reused; slot -1 on both ends marks a control edge. Names are not checked for uniqueness here (the importer does).

Columns, not objects, because a graph of a million nodes is mostly copied, pruned and cut as a whole: a node costs its
name, one shared `NodeProperties` and three integers, an edge four integers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgumentError, OutOfRangeError
from .adjacency import Adjacency
from .node import CONTROL_SLOT, SINK_ID, SOURCE_ID, Edge, Node
from .ops.registry import PRODUCER
from .properties import NodeProperties, properties_of
from .protos import FunctionDefLibrary, GraphDef

Ids = npt.NDArray[np.int32]
_MIN_CONSUMER_WITH_FUNCTIONS = 12
_REMOVED = -1
_COLUMNS = (
    "_names _properties _requested _assigned _cost_ids _device_names _src _src_output _dst _dst_input".split()
)


@dataclass(frozen=True, slots=True)
class Versions:
    """Which producers wrote a graph and which consumers may read it."""

    producer: int = PRODUCER
    min_consumer: int = 0
    bad_consumers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeArrays:
    """All live edges in ascending id, one int32 array a field; control edges have slots -1."""

    id: Ids
    src: Ids
    src_output: Ids
    dst: Ids
    dst_input: Ids


def _column(values: npt.ArrayLike) -> array[int]:
    column = array("i")
    column.frombytes(np.asarray(values, np.int32).tobytes())
    return column


class Graph:
    """A mutable dataflow graph. Not safe to share between threads while it changes."""

    def __init__(self, library: FunctionDefLibrary | None = None) -> None:
        """An empty graph: source, sink and the edge between them; `library` holds the functions nodes may call."""
        self.library = FunctionDefLibrary()
        self.versions = Versions()
        if library is not None and (library.function or library.gradient):
            self.library.CopyFrom(library)
            self.versions = Versions(min_consumer=_MIN_CONSUMER_WITH_FUNCTIONS)
        no_op = properties_of("NoOp", {})
        self._names: list[str | None] = ["_SOURCE", "_SINK"]
        self._properties: list[NodeProperties | None] = [no_op, no_op]
        self._requested = array("i", (0, 0))
        self._assigned = array("i", (0, 0))
        self._cost_ids = array("i", (0, 1))
        self._devices: dict[str, int] = {"": 0}
        self._device_names: list[str] = [""]
        self._src = array("i", (SOURCE_ID,))
        self._src_output = array("i", (CONTROL_SLOT,))
        self._dst = array("i", (SINK_ID,))
        self._dst_input = array("i", (CONTROL_SLOT,))
        self._num_removed_nodes = 0
        self._num_removed_edges = 0
        self._inputs: dict[int, list[str]] = {}
        self._in: Adjacency | None = None
        self._out: Adjacency | None = None
        self._by_name: dict[str, int] | None = None
        self._name_counter = 0

    # Sizes and look-ups

    @property
    def num_nodes(self) -> int:
        """Number of live nodes, source and sink included."""
        return len(self._names) - self._num_removed_nodes

    @property
    def num_edges(self) -> int:
        """Number of live edges."""
        return len(self._src) - self._num_removed_edges

    @property
    def num_node_ids(self) -> int:
        """One more than the highest node id ever given."""
        return len(self._names)

    @property
    def num_edge_ids(self) -> int:
        """One more than the highest edge id ever given."""
        return len(self._src)

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
        if not 0 <= edge_id < len(self._src) or self._src[edge_id] == _REMOVED:
            raise InvalidArgumentError(f"the graph has no edge with id {edge_id}")
        return Edge(self, edge_id)

    def node_ids(self) -> Iterator[int]:
        """Ids of live nodes, ascending."""
        return (i for i, name in enumerate(self._names) if name is not None)

    def nodes(self) -> Iterator[Node]:
        """Live nodes by ascending id, source and sink first."""
        return (Node(self, i) for i in self.node_ids())

    def op_nodes(self) -> Iterator[Node]:
        """Live nodes by ascending id, without source and sink."""
        return (Node(self, i) for i in self.node_ids() if i > SINK_ID)

    def edges(self) -> Iterator[Edge]:
        """Live edges by ascending id."""
        return (Edge(self, e) for e, src in enumerate(self._src) if src != _REMOVED)

    def find_node(self, name: str) -> Node | None:
        """The node of that name (the last one added, should there be several), or None."""
        if self._by_name is None:
            self._by_name = {n: i for i, n in enumerate(self._names) if n is not None}
        found = self._by_name.get(name)
        return None if found is None else Node(self, found)

    def check_node(self, node: Node) -> None:
        """Raises InvalidArgumentError unless `node` is a live node of this graph."""
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

    # One node

    def node_name(self, node_id: int) -> str:
        """Name of a live node."""
        name = self._names[node_id]
        if name is None:
            raise InvalidArgumentError(f"node id {node_id} was removed from the graph")
        return name

    def node_properties(self, node_id: int) -> NodeProperties:
        """Op, attrs and port types of a live node."""
        properties = self._properties[node_id]
        if properties is None:
            raise InvalidArgumentError(f"node id {node_id} was removed from the graph")
        return properties

    def set_node_properties(self, node_id: int, properties: NodeProperties) -> None:
        """Replaces op, attrs and port types of one node."""
        self._properties[node_id] = properties

    def requested_device(self, node_id: int) -> str:
        """Device the author asked for, or ""."""
        return self._device_names[self._requested[node_id]]

    def assigned_device(self, node_id: int) -> str:
        """Device the placer chose, or ""."""
        return self._device_names[self._assigned[node_id]]

    def assign_device(self, node_id: int, name: str) -> None:
        """Sets the assigned device of one node."""
        self._assigned[node_id] = self.intern_device(name)

    def intern_device(self, name: str) -> int:
        """The index of a device name in this graph; consecutive from 1, 0 is the empty name."""
        index = self._devices.setdefault(name, len(self._device_names))
        if index == len(self._device_names):
            self._device_names.append(name)
        return index

    def cost_id(self, node_id: int) -> int:
        """Id that cost models know the node by."""
        return self._cost_ids[node_id]

    def requested_inputs(self, node_id: int) -> list[str]:
        """Input strings of a node: as given, or as its edges say."""
        if node_id in self._inputs:
            return list(self._inputs[node_id])
        ends = [self.edge_ends(e) for e in self.in_edge_ids(node_id)]
        data = sorted((end for end in ends if end[3] != CONTROL_SLOT), key=lambda end: end[3])
        control = [end for end in ends if end[3] == CONTROL_SLOT and end[0] != SOURCE_ID]
        names = [_tensor_name(self.node_name(src), port) for src, port, _, _ in data]
        return names + ["^" + self.node_name(src) for src, _, _, _ in control]

    # Whole columns, for passes over the graph

    def edge_ends(self, edge_id: int) -> tuple[int, int, int, int]:
        """(src, src_output, dst, dst_input) of a live edge, as ids."""
        return self._src[edge_id], self._src_output[edge_id], self._dst[edge_id], self._dst_input[edge_id]

    def edge_arrays(self) -> EdgeArrays:
        """All live edges as arrays."""
        src = np.array(self._src, np.int32)
        live = np.flatnonzero(src != _REMOVED).astype(np.int32)
        columns = (np.array(c, np.int32)[live] for c in (self._src_output, self._dst, self._dst_input))
        return EdgeArrays(live, src[live], *columns)

    def names(self) -> Sequence[str | None]:
        """Names by node id, None where a node was removed; not to be changed."""
        return self._names

    def all_properties(self) -> Sequence[NodeProperties | None]:
        """Properties by node id, None where a node was removed; not to be changed."""
        return self._properties

    def device_names(self) -> Sequence[str]:
        """Interned device names by index; not to be changed."""
        return self._device_names

    def requested_device_indices(self) -> Ids:
        """Index of the requested device by node id (a copy)."""
        return np.array(self._requested, np.int32)

    def assigned_device_indices(self) -> Ids:
        """Index of the assigned device by node id (a copy)."""
        return np.array(self._assigned, np.int32)

    def assign_devices(self, indices: Ids) -> None:
        """Sets the assigned device of every node id from indices that `intern_device` gave."""
        self._assigned = _column(indices)

    def in_edge_ids(self, node_id: int) -> list[int]:
        """Ids of the edges that enter a node, in EdgeSet order; not to be changed."""
        if self._in is None:
            self._in = self._index(self._dst)
        return self._in.of(node_id)

    def out_edge_ids(self, node_id: int) -> list[int]:
        """Ids of the edges that leave a node, in EdgeSet order; not to be changed."""
        if self._out is None:
            self._out = self._index(self._src)
        return self._out.of(node_id)

    def _index(self, ends: array[int]) -> Adjacency:
        column = np.array(ends, np.int32)
        column[np.array(self._src, np.int32) == _REMOVED] = _REMOVED
        return Adjacency(column, len(self._names))

    # Changes

    def add_node(
        self, name: str, op: str, attrs: Mapping[str, Any] | None = None, *, device: str = "", inputs: Iterable[str] = ()
    ) -> Node:
        """Adds a node from an op and attr values (defaults are filled in); no edge is made from `inputs`.

        Raises NotFoundError for an unknown op, InvalidArgumentError for attrs the port types cannot be told from.
        """
        return self.add_node_with(name, properties_of(op, attrs or {}), device=device, inputs=inputs)

    def add_node_with(
        self, name: str, properties: NodeProperties, *, device: str = "", inputs: Iterable[str] = ()
    ) -> Node:
        """Adds a node with ready properties."""
        node_id = len(self._names)
        self.extend_nodes([name], [properties], [self.intern_device(device)])
        given = list(inputs)
        if given:
            self._inputs[node_id] = given
        if self._by_name is not None:
            self._by_name[name] = node_id
        return Node(self, node_id)

    def extend_nodes(
        self, names: Sequence[str], properties: Sequence[NodeProperties], requested: Sequence[int]
    ) -> None:
        """Appends many nodes: names, properties, and interned indices of the requested devices."""
        first = len(self._names)
        self._names.extend(names)
        self._properties.extend(properties)
        self._requested.extend(requested)
        self._assigned.frombytes(bytes(self._assigned.itemsize * len(names)))
        self._cost_ids.extend(range(first, first + len(names)))
        if len(names) > 1:
            self._by_name = None

    def set_requested_inputs(self, node_id: int, inputs: list[str]) -> None:
        """Keeps the input strings of a node whose edges do not say it all."""
        self._inputs[node_id] = inputs

    def extend_edges(self, src: npt.ArrayLike, src_output: npt.ArrayLike, dst: npt.ArrayLike, dst_input: npt.ArrayLike) -> None:
        """Appends many edges, in this order, from four equally long columns of ids and slots."""
        for column, values in zip(
            (self._src, self._src_output, self._dst, self._dst_input), (src, src_output, dst, dst_input), strict=True
        ):
            column.frombytes(np.asarray(values, np.int32).tobytes())
        self._in = self._out = None  # a bulk change starts the EdgeSet orders anew

    def add_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> Edge:
        """Adds an edge; source, sink and slot -1 make it a control edge, and then both slots must be -1.

        A second edge into one input port is accepted here and refused by whoever needs a single one.
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
        """Adds a control edge and notes it in `dst`'s input strings; None when there is one already.

        With `allow_duplicates` neither the check nor the note is made.
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
        """Removes a control edge and its note in the consumer's input strings."""
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
        self._src[edge.id] = _REMOVED
        self._num_removed_edges += 1

    def remove_node(self, node: Node) -> None:
        """Removes a node with its edges; InvalidArgumentError for source and sink."""
        self.check_node(node)
        if not node.is_op:
            raise InvalidArgumentError(f"{node.name} belongs to every graph and cannot be removed")
        for edge in node.in_edges() + node.out_edges():
            if self._src[edge.id] != _REMOVED:
                self.remove_edge(edge)
        self._forget(node.id)

    def keep_only(self, keep: npt.NDArray[np.bool_]) -> bool:
        """Removes every node whose id is False in `keep`, with its edges; tells whether there was any."""
        dead = [int(i) for i in np.flatnonzero(~keep) if self._names[i] is not None]
        if not dead:
            return False
        src, dst = np.array(self._src, np.int32), np.array(self._dst, np.int32)
        cut = (src != _REMOVED) & ~(keep[src] & keep[dst])
        src[cut] = _REMOVED
        self._src = _column(src)
        self._num_removed_edges += int(cut.sum())
        self._in = self._out = None
        for node_id in dead:
            self._forget(node_id)
        return True

    def _forget(self, node_id: int) -> None:
        self._names[node_id] = None
        self._properties[node_id] = None
        self._inputs.pop(node_id, None)
        self._by_name = None
        self._num_removed_nodes += 1

    def update_edge(self, new_src: Node, new_src_output: int, dst: Node, dst_input: int) -> Edge:
        """Makes `new_src:new_src_output` feed input `dst_input` of `dst` instead of what feeds it now.

        The new edge gets a new id. Raises OutOfRangeError for ports that do not exist, InvalidArgumentError when nothing
        feeds that input.
        """
        if not 0 <= new_src_output < new_src.num_outputs:
            raise OutOfRangeError(
                f"Node {new_src.name!r} (type: {new_src.op!r}, num of outputs: {new_src.num_outputs}) "
                f"does not have output {new_src_output}"
            )
        if not 0 <= dst_input < dst.num_inputs:
            raise OutOfRangeError(
                f"Node {dst.name!r} (type: {dst.op!r}, num of inputs: {dst.num_inputs}) does not have input {dst_input}"
            )
        old = [edge for edge in dst.in_edges() if edge.dst_input == dst_input]
        if not old:
            raise InvalidArgumentError(f"Couldn't find edge to {dst.name}:{dst_input}")
        inputs = self.requested_inputs(dst.id)
        self.remove_edge(old[0])
        inputs[dst_input] = f"{new_src.name}:{new_src_output}"
        self._inputs[dst.id] = inputs
        return self.add_edge(new_src, new_src_output, dst, dst_input)

    def fix_source_and_sink_edges(self) -> None:
        """Joins every node without in-edges to the source and every node without out-edges to the sink, by ascending id."""
        edges = self.edge_arrays()
        count = len(self._names)
        has_in = np.bincount(edges.dst, minlength=count) > 0
        has_out = np.bincount(edges.src, minlength=count) > 0
        has_in[SOURCE_ID] = has_out[SINK_ID] = True
        live = np.array([name is not None for name in self._names])
        loose = np.flatnonzero(live & ~(has_in & has_out))
        # Both possible edges of every loose node, the one from the source first; then those that are needed.
        needed = np.stack([~has_in[loose], ~has_out[loose]], axis=1)
        src = np.stack([np.full(len(loose), SOURCE_ID), loose], axis=1)[needed]
        dst = np.stack([loose, np.full(len(loose), SINK_ID)], axis=1)[needed]
        control = np.full(len(src), CONTROL_SLOT)
        self.extend_edges(src, control, dst, control)

    def new_name(self, prefix: str) -> str:
        """`prefix/_N` with a counter that all prefixes of this graph share; collisions are not looked for."""
        name = f"{prefix}/_{self._name_counter}"
        self._name_counter += 1
        return name

    def copy(self) -> Graph:
        """A copy with dense ids: nodes and edges keep their order, holes vanish.

        The copy has its own source-sink edge before all copied edges, the copied one included, as in TensorFlow: every copy
        shifts edge ids by one.
        """
        other = Graph()
        other.library, other.versions = self.library, self.versions
        live = np.array(list(self.node_ids()), np.int32)
        new_id = np.full(len(self._names), _REMOVED, np.int32)
        new_id[live] = np.arange(len(live), dtype=np.int32)
        other._names = [name for name in self._names if name is not None]
        other._properties = [properties for properties in self._properties if properties is not None]
        other._requested = _column(np.array(self._requested, np.int32)[live])
        other._assigned = _column(np.array(self._assigned, np.int32)[live])
        other._cost_ids = _column(np.array(self._cost_ids, np.int32)[live])
        other._devices, other._device_names = dict(self._devices), list(self._device_names)
        other._inputs = {int(new_id[i]): list(inputs) for i, inputs in self._inputs.items()}
        edges = self.edge_arrays()
        other.extend_edges(new_id[edges.src], edges.src_output, new_id[edges.dst], edges.dst_input)
        return other

    def clone(self) -> Graph:
        """A copy with the very same ids, holes and EdgeSet orders begun anew; changing one leaves the other alone."""
        other = Graph()
        other.library, other.versions = self.library, self.versions
        for column in _COLUMNS:
            setattr(other, column, getattr(self, column)[:])
        other._devices = dict(self._devices)
        other._inputs = {node_id: list(inputs) for node_id, inputs in self._inputs.items()}
        other._num_removed_nodes, other._num_removed_edges = self._num_removed_nodes, self._num_removed_edges
        other._name_counter = self._name_counter
        return other

    def to_graph_def(self) -> GraphDef:
        """The GraphDef of all nodes by ascending id; see `exporter.to_graph_def`."""
        return self.to_graph_def_sub_range(SINK_ID + 1)

    def to_graph_def_sub_range(self, from_node_id: int) -> GraphDef:
        """The GraphDef of the nodes with an id of at least `from_node_id`."""
        from .exporter import to_graph_def  # the exporter reads graphs, so it cannot be below this module

        return to_graph_def(self, from_node_id)

    def __repr__(self) -> str:
        return f"<Graph of {self.num_nodes} nodes and {self.num_edges} edges>"


def _tensor_name(node: str, port: int) -> str:
    return node if port == 0 else f"{node}:{port}"
