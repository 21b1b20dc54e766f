"""How a graph is stored: nodes and edges in columns. `Graph` adds views, names and single changes.

Node 0 is `_SOURCE`, node 1 is `_SINK`, edge 0 joins them. Ids are never reused. A control edge has slots -1 and -1.

Graphs of a million nodes are mostly copied, pruned and cut as a whole, so there is no object per node: a node costs its
name, a reference to shared `NodeProperties` and three integers, an edge costs four integers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgumentError
from .adjacency import Adjacency
from .arrays import Flags, Numbers, first_seen, positions
from .dtypes import Shape
from .library.function_library import FunctionLibrary
from .library.lowered_nodes import LoweredNode
from .ops.properties import Details, NodeProperties, no_op_properties
from .port_table import distinct_properties
from .protos import FunctionDefLibrary
from .versions import Versions

Ids = npt.NDArray[np.int32]

CONTROL_SLOT = -1
SOURCE_ID = 0
SINK_ID = 1
REMOVED = -1
_NODE_COLUMNS = ("_names", "_properties", "_requested", "_assigned", "_cost_ids")
_EDGE_COLUMNS = ("_src", "_src_output", "_dst", "_dst_input")


@dataclass(frozen=True, slots=True)
class EdgeArrays:
    """All live edges by ascending id, one int32 array per field; control edges have slots -1."""

    id: Ids
    src: Ids
    src_output: Ids
    dst: Ids
    dst_input: Ids


def _column(values: npt.ArrayLike) -> array[int]:
    column = array("i")
    column.frombytes(np.asarray(values, np.int32).tobytes())
    return column


class Columns:
    """Nodes and edges by id."""

    def __init__(self) -> None:
        """Source, sink, and the edge between them."""
        self.functions = FunctionLibrary(FunctionDefLibrary())
        self.versions = Versions()
        self.debug_info = b""  # what a GraphDef says of the program that wrote it, undecoded
        self.fed_shapes: Mapping[str, Shape] | None = None  # of what is fed here, by "node:output"; None if not asked
        self.lowered: dict[str, LoweredNode] = {}  # what conditionals and loops have become, by their names
        no_op = no_op_properties()
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
        self._kinds: tuple[list[NodeProperties], Numbers] | None = None
        self._details: Details | None = None
        self._rows = array("i")  # row of `_details` by node id, -1 for none; may be shorter than the other columns

    @property
    def library(self) -> FunctionDefLibrary:
        """The functions that nodes may call, as a message not to be changed; `functions` looks them up by name."""
        return self.functions.message

    @library.setter
    def library(self, message: FunctionDefLibrary) -> None:
        self.functions = FunctionLibrary(message)

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
        """One more than the highest node id so far, removed nodes included."""
        return len(self._names)

    @property
    def num_edge_ids(self) -> int:
        """One more than the highest edge id so far, removed edges included."""
        return len(self._src)

    # One node or edge

    def find_id(self, name: str) -> int | None:
        """The id of the node of that name (the last one added if there are several), or None."""
        if self._by_name is None:
            self._by_name = {n: i for i, n in enumerate(self._names) if n is not None}
        return self._by_name.get(name)

    def node_name(self, node_id: int) -> str:
        """Name of a live node; InvalidArgumentError for a removed one."""
        name = self._names[node_id]
        if name is None:
            raise InvalidArgumentError(f"node id {node_id} was removed from the graph")
        return name

    def node_properties(self, node_id: int) -> NodeProperties:
        """Op, attrs and port types of a live node; InvalidArgumentError for a removed one."""
        properties = self._properties[node_id]
        if properties is None:
            raise InvalidArgumentError(f"node id {node_id} was removed from the graph")
        if self._details is not None and node_id < len(self._rows) and self._rows[node_id] >= 0:
            return self._details.properties(properties, self._rows[node_id])
        return properties

    def set_node_properties(self, node_id: int, properties: NodeProperties) -> None:
        """Replaces the properties of one node, its row of the details table included."""
        self._properties[node_id] = properties
        if node_id < len(self._rows):
            self._rows[node_id] = -1
        self._kinds = None

    def requested_device(self, node_id: int) -> str:
        """The device that the graph's author asked for, or ""."""
        return self._device_names[self._requested[node_id]]

    def assigned_device(self, node_id: int) -> str:
        """The device that the placer chose, or ""."""
        return self._device_names[self._assigned[node_id]]

    def assign_device(self, node_id: int, name: str) -> None:
        """Sets the device on which a node runs; the full name is not checked."""
        self._assigned[node_id] = self.intern_device(name)

    def intern_device(self, name: str) -> int:
        """The index of a device name in this graph: 0 for the empty name, new names get the next number."""
        index = self._devices.setdefault(name, len(self._device_names))
        if index == len(self._device_names):
            self._device_names.append(name)
        return index

    def given_inputs(self, node_id: int) -> Sequence[str] | None:
        """The input strings of the NodeDef that a node was made from; None when its edges determine them."""
        return self._inputs.get(node_id)

    def cost_id(self, node_id: int) -> int:
        """The id by which cost models know the node."""
        return self._cost_ids[node_id]

    def edge_ends(self, edge_id: int) -> tuple[int, int, int, int]:
        """(src, src_output, dst, dst_input) of a live edge, as ids."""
        return self._src[edge_id], self._src_output[edge_id], self._dst[edge_id], self._dst_input[edge_id]

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
        column = np.where(np.array(self._src, np.int32) == REMOVED, REMOVED, np.array(ends, np.int32)).astype(np.int32)
        return Adjacency(column, len(self._names))

    # Whole columns, for passes over the graph

    def node_ids(self) -> Iterator[int]:
        """Ids of live nodes, ascending."""
        return iter(self.live_nodes().tolist())

    def live_nodes(self) -> Ids:
        """Ids of live nodes, ascending."""
        if not self._num_removed_nodes:
            return np.arange(len(self._names), dtype=np.int32)
        return np.array([i for i, name in enumerate(self._names) if name is not None], np.int32)

    def edge_arrays(self) -> EdgeArrays:
        """All live edges in columns, as copies."""
        live = positions(np.array(self._src, np.int32) != REMOVED).astype(np.int32)
        columns = (self._src, self._src_output, self._dst, self._dst_input)
        return EdgeArrays(live, *(np.array(column, np.int32)[live] for column in columns))

    def names(self) -> Sequence[str | None]:
        """Names by node id, None for removed nodes; not to be changed."""
        return self._names

    def all_properties(self) -> Sequence[NodeProperties | None]:
        """Properties by node id, None for removed nodes; not to be changed."""
        if self._details is None:
            return self._properties
        return [None if kind is None else self.node_properties(i) for i, kind in enumerate(self._properties)]

    def shared_properties(self) -> Sequence[NodeProperties | None]:
        """`all_properties` without details: ops and port types are right, attrs of nodes with details are not."""
        return self._properties

    def distinct_properties(self) -> tuple[list[NodeProperties], Numbers]:
        """The distinct `shared_properties` in order of appearance, and by node id the index of its own (-1: none)."""
        if self._kinds is None or len(self._kinds[1]) != len(self._properties):
            self._kinds = distinct_properties(self._properties)
        return self._kinds

    def details(self) -> tuple[Details | None, Ids]:
        """The details table, and by node id its row (-1: none)."""
        rows = np.full(len(self._names), -1, np.int32)
        rows[: len(self._rows)] = self._rows
        return self._details, rows

    def set_details(self, details: Details, rows: Ids) -> None:
        """Replaces the details table; `rows` has the row by node id (-1: none)."""
        self._details, self._rows = details, _column(rows)

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
        """Sets the assigned device of every node id; `indices` come from `intern_device`."""
        self._assigned = _column(indices)

    def request_devices(self, indices: Ids) -> None:
        """Sets the requested device of every node id; `indices` come from `intern_device`."""
        self._requested = _column(indices)

    # Changes in bulk

    def extend_nodes(
        self, names: Sequence[str], properties: Sequence[NodeProperties], requested: Sequence[int]
    ) -> None:
        """Appends many nodes; `requested` has indices from `intern_device`."""
        first = len(self._names)
        self._names.extend(names)
        self._properties.extend(properties)
        self._requested.extend(_column(requested))
        self._assigned.frombytes(bytes(self._assigned.itemsize * len(names)))
        self._cost_ids.extend(_column(np.arange(first, first + len(names))))
        if self._by_name is not None:
            self._by_name.update(zip(names, range(first, first + len(names)), strict=True))

    def extend_nodes_of_kinds(
        self, names: Sequence[str], kinds: Sequence[NodeProperties], kind_of: Numbers, requested: Sequence[int]
    ) -> None:
        """`extend_nodes` with properties `kinds[kind_of[k]]`; later passes need not group the nodes by kind again."""
        known, known_of = self.distinct_properties()
        code_of = {id(properties): code for code, properties in enumerate(known)}
        seen = first_seen(kind_of)
        used = kind_of[seen.first].tolist()
        codes = np.array([code_of.setdefault(id(kinds[kind]), len(code_of)) for kind in used], np.int64)
        self.extend_nodes(names, list(map(kinds.__getitem__, kind_of.tolist())), requested)
        of_code = dict(zip(codes.tolist(), used, strict=True))  # `kinds` may contain one object twice
        added = [kinds[of_code[code]] for code in range(len(known), len(code_of))]
        self._kinds = [*known, *added], np.concatenate([known_of, codes[seen.number]])

    def extend_edges(
        self, src: npt.ArrayLike, src_output: npt.ArrayLike, dst: npt.ArrayLike, dst_input: npt.ArrayLike
    ) -> None:
        """Appends many edges in this order, from four columns of equal length."""
        for name, values in zip(_EDGE_COLUMNS, (src, src_output, dst, dst_input), strict=True):
            getattr(self, name).frombytes(np.asarray(values, np.int32).tobytes())
        self._in = self._out = None  # a bulk change resets the EdgeSet orders

    def take_back(self, num_nodes: int, num_edges: int) -> None:
        """Undoes bulk additions: the nodes and edges from these ids on are gone, and the ids are free."""
        for name in _NODE_COLUMNS:
            del getattr(self, name)[num_nodes:]
        for name in _EDGE_COLUMNS:
            del getattr(self, name)[num_edges:]
        self._by_name = self._kinds = self._in = self._out = None

    def keep_only(self, keep: Flags) -> bool:
        """Removes every node whose id is False in `keep`, with its edges; returns whether any node was removed."""
        dead = [i for i in positions(~keep).tolist() if self._names[i] is not None]
        if not dead:
            return False
        src, dst = np.array(self._src, np.int32), np.array(self._dst, np.int32)
        cut = (src != REMOVED) & ~(keep[src] & keep[dst])
        src[cut] = REMOVED
        self._src = _column(src)
        self._num_removed_edges += int(cut.sum())
        self._in = self._out = None
        self._forget(dead)
        return True

    def _forget(self, dead: Sequence[int]) -> None:
        for node_id in dead:
            self._names[node_id] = self._properties[node_id] = None
            self._inputs.pop(node_id, None)
        self._by_name = self._kinds = None
        self._num_removed_nodes += len(dead)

    def fix_source_and_sink_edges(self) -> None:
        """Joins nodes without in-edges to the source and nodes without out-edges to the sink, by ascending id."""
        edges = self.edge_arrays()
        count = len(self._names)
        has_in = np.bincount(edges.dst, minlength=count) > 0
        has_out = np.bincount(edges.src, minlength=count) > 0
        has_in[SOURCE_ID] = has_out[SINK_ID] = True
        loose = self.live_nodes()
        loose = loose[~(has_in & has_out)[loose]]
        # for node in loose: if not has_in[node]: add (source, node); if not has_out[node]: add (node, sink)
        needed = np.empty((len(loose), 2), np.bool_)
        needed[:, 0], needed[:, 1] = ~has_in[loose], ~has_out[loose]
        src, dst = np.empty((2, len(loose), 2), np.int32)
        src[:, 0], src[:, 1] = SOURCE_ID, loose
        dst[:, 0], dst[:, 1] = loose, SINK_ID
        control = np.full(np.count_nonzero(needed), CONTROL_SLOT)
        self.extend_edges(src[needed], control, dst[needed], control)

    # Copies

    def copy(self, keep: Flags | None = None) -> Self:
        """A copy with dense ids: nodes and edges keep their order, ids of removed ones are not kept.

        With `keep` only of the nodes whose id is True in it, and of the edges between them.

        As in TensorFlow the copy has a source-sink edge of its own before all copied edges, which include the
        original's: every copy shifts edge ids by one.
        """
        other = type(self)()
        live = self.live_nodes()
        if keep is not None:
            live = live[keep[live]]
        new_id = np.full(len(self._names), REMOVED, np.int32)
        new_id[live] = np.arange(len(live), dtype=np.int32)
        if keep is not None:
            kept = live.tolist()
            other._names, other._properties = [self._names[i] for i in kept], [self._properties[i] for i in kept]
        elif self._num_removed_nodes:
            other._names = [name for name in self._names if name is not None]
            other._properties = [properties for properties in self._properties if properties is not None]
        else:
            other._names, other._properties = self._names[:], self._properties[:]
            other._by_name = None if self._by_name is None else dict(self._by_name)
        for name in ("_requested", "_assigned", "_cost_ids"):
            setattr(other, name, _column(np.array(getattr(self, name), np.int32)[live]))
        self._share_with(other)
        other._rows = _column(self.details()[1][live])
        other._inputs = {int(new_id[i]): list(inputs) for i, inputs in self._inputs.items() if new_id[i] != REMOVED}
        edges = self.edge_arrays()
        src, dst = new_id[edges.src], new_id[edges.dst]
        at: Flags | slice = np.s_[:] if keep is None else (src != REMOVED) & (dst != REMOVED)
        other.extend_edges(src[at], edges.src_output[at], dst[at], edges.dst_input[at])
        return other

    def clone(self) -> Self:
        """A copy with the same ids, gaps included; its EdgeSet orders are reset."""
        other = type(self)()
        for name in (*_NODE_COLUMNS, *_EDGE_COLUMNS):
            setattr(other, name, getattr(self, name)[:])
        self._share_with(other)
        other._inputs = {node_id: list(inputs) for node_id, inputs in self._inputs.items()}
        other._rows = self._rows[:]
        for name in ("_num_removed_nodes", "_num_removed_edges", "_name_counter"):
            setattr(other, name, getattr(self, name))
        return other

    def _share_with(self, other: Self) -> None:
        other.functions, other.versions, other._details = self.functions, self.versions, self._details
        other.fed_shapes, other.debug_info, other.lowered = self.fed_shapes, self.debug_info, dict(self.lowered)
        other._devices, other._device_names = dict(self._devices), list(self._device_names)
