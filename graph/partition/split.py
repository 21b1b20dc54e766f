"""Cutting a placed graph: one graph per location, joined by Send and Recv nodes.

Flows in: a graph whose nodes all have an assigned device, and options. Flows out: a graph per location
(`split_graph`), or GraphDefs (`partition`). Always holds: every cut edge becomes, or shares, one pair of transfer nodes;
consumers are visited by ascending id, their data inputs by port, then their control inputs, and names are drawn in the
order constant, cast, send, recv, cast or identity, so that all names equal TensorFlow's.

A pair is shared by all consumers of one output in one location that want it in the same memory. Reference edges share
nothing: each has its own pair, and its recv waits for the consumer's other inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import InternalError, InvalidArgumentError, NotFoundError, UnimplementedError
from ..collector import collector_paused
from ..device_name import parse_full_name
from ..dtypes import DataType, base_type, is_ref
from ..graph import EdgeArrays, Graph, Ids
from ..memory_types import memory_types
from ..node import CONTROL_SLOT, SINK_ID, Edge, Node
from ..properties import NodeProperties, properties_of
from ..protos import AttrValue, GraphDef
from .options import PartitionOptions, assigned_device
from .parts import START_TIME, Parts
from .transfer import Transfer, transfer_properties

_CPU = "CPU"


@dataclass(slots=True)
class _Arrival:
    """What consumers of one transferred tensor read: `node` (the recv, or the cast or identity behind it)."""

    node: int
    recv: int
    start_time: int


class _CutEdge(NamedTuple):
    """One edge to be replaced by a transfer: its id and ends, by node id and port."""

    id: int
    src: int
    output: int
    dst: int
    port: int


class _Cut:
    """One partitioning in progress."""

    def __init__(self, graph: Graph, options: PartitionOptions) -> None:
        self.graph = graph
        self.options = options
        self.edges: EdgeArrays = graph.edge_arrays()
        self.device_names = graph.device_names()
        self.device_types = [_device_type(name) for name in self.device_names]
        self.devices = graph.assigned_device_indices().tolist()
        locations, self.location_of = self._locate()
        self.location = self.location_of.tolist()
        self.parts = Parts(graph, locations, self.location_of)
        self.names = graph.names()
        self.properties = graph.all_properties()
        self.incarnations = [options.get_incarnation(name) if name else 0 for name in self.device_names]
        self._arrivals: dict[tuple[int, int, int, bool], _Arrival] = {}
        self._memory: dict[tuple[int, str], tuple[tuple[bool, ...], tuple[bool, ...]]] = {}

    def _locate(self) -> tuple[list[str], Ids]:
        """All locations, and the index of each node's; -1 for source, sink and removed nodes."""
        live = [i for i in self.graph.node_ids() if i > SINK_ID]
        location_of = np.full(self.graph.num_node_ids, -1, np.int32)
        if self.options.node_to_loc is assigned_device:
            location_of[live] = self.graph.assigned_device_indices()[live]
            return list(self.device_names), location_of
        found: dict[str, int] = {}
        for i in live:
            name = self.options.node_to_loc(Node(self.graph, i))
            location_of[i] = found.setdefault(name, len(found))
        return list(found), location_of

    def run(self) -> dict[str, Graph]:
        """Cuts, and returns the graph of each location."""
        self._check_complete()
        inner = (self.edges.src > SINK_ID) & (self.edges.dst > SINK_ID)
        crosses = inner & (self.location_of[self.edges.src] != self.location_of[self.edges.dst])
        cut = crosses | self._memory_changes(inner & ~crosses)
        if self.options.need_to_record_start_times:
            self._record_start_times()
        ref_recvs: dict[int, list[_Arrival]] = {}
        for edge in self._in_order(np.flatnonzero(cut)):
            self._join(edge, ref_recvs)
        for consumer, arrivals in ref_recvs.items():
            self._order_after_inputs(consumer, arrivals)
        self._write_start_times()
        self._fill_in_incarnations()
        return self.parts.graphs(np.flatnonzero(inner & ~cut))

    def _check_complete(self) -> None:
        data = self.edges.dst[self.edges.dst_input != CONTROL_SLOT]
        connected = np.bincount(data, minlength=self.graph.num_node_ids).tolist()
        for i, properties in enumerate(self.properties):
            if properties is not None and connected[i] != len(properties.input_types):
                name, missing = self.graph.node_name(i), len(properties.input_types) - connected[i]
                raise InvalidArgumentError(f"Incomplete graph, missing {missing} inputs for {name}", node=name)

    def _memory_changes(self, local: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which local data edges join host to device memory of one device, and so need a transfer."""
        changes = np.zeros_like(local)
        devices = self.graph.assigned_device_indices()
        off_cpu = np.array([kind != _CPU for kind in self.device_types])[devices]
        same_device = devices[self.edges.src] == devices[self.edges.dst]
        candidates = local & (self.edges.dst_input != CONTROL_SLOT) & off_cpu[self.edges.src] & same_device
        for at in np.flatnonzero(candidates).tolist():
            from_host = self._on_host(int(self.edges.src[at]))[1][self.edges.src_output[at]]
            to_host = self._on_host(int(self.edges.dst[at]))[0][self.edges.dst_input[at]]
            changes[at] = from_host != to_host
        return changes

    def _in_order(self, cut: npt.NDArray[np.int64]) -> Iterator[_CutEdge]:
        """The cut edges by consumer: data inputs by port, then control inputs."""
        port, dst = self.edges.dst_input[cut], self.edges.dst[cut]
        at = cut[np.lexsort((np.where(port == CONTROL_SLOT, 0, port), port == CONTROL_SLOT, dst))]
        edges = self.edges
        columns = (edges.id, edges.src, edges.src_output, edges.dst, edges.dst_input)
        return map(_CutEdge, *(column[at].tolist() for column in columns))

    def _join(self, edge: _CutEdge, ref_recvs: dict[int, list[_Arrival]]) -> None:
        """Connects the consumer of one cut edge to a transfer, a shared one where there is one."""
        key = edge.src, edge.output, self.location[edge.dst], self._arrives_on_host(edge)
        arrival = self._arrivals.get(key)
        if arrival is None:
            arrival = self._transfer(edge)
            if self._is_ref(edge.src, edge.output):
                ref_recvs.setdefault(edge.dst, []).append(arrival)
            else:
                self._arrivals[key] = arrival
        elif self.options.scheduling_for_recvs:
            arrival.start_time = min(arrival.start_time, self._start_time(edge.dst))
        output = CONTROL_SLOT if edge.output == CONTROL_SLOT else 0
        self.parts.add_edge(arrival.node, output, edge.dst, edge.port)

    def _is_ref(self, node_id: int, output: int) -> bool:
        return output != CONTROL_SLOT and is_ref(self.graph.node_properties(node_id).output_types[output])

    def _order_after_inputs(self, consumer: int, arrivals: list[_Arrival]) -> None:
        """Makes the recvs of reference edges wait for every other input of their consumer."""
        others = self.parts.transferred_inputs(consumer, {arrival.node for arrival in arrivals})
        for at in np.flatnonzero(self.edges.dst == consumer).tolist():
            src = int(self.edges.src[at])
            local = src > SINK_ID and self.location[src] == self.location[consumer]
            if local and not self._is_ref(src, int(self.edges.src_output[at])):
                others.append(src)
        for arrival in arrivals:
            for number in {arrival.recv, arrival.node}:
                self.parts.set_start_time(number, arrival.start_time)
            for other in dict.fromkeys(others):
                self.parts.add_edge(other, CONTROL_SLOT, arrival.recv, CONTROL_SLOT)

    def _transfer(self, edge: _CutEdge) -> _Arrival:
        """Adds the nodes that carry one edge; returns what its consumers read."""
        control = edge.output == CONTROL_SLOT
        local = self.location[edge.src] == self.location[edge.dst]
        dtype = DataType.FLOAT if control else base_type(self.graph.node_properties(edge.dst).input_types[edge.port])
        sent_type = dtype if local or self.options.should_cast is None else self._cast_type(edge, dtype)
        from_host = not control and self._on_host(edge.src)[1][edge.output]
        to_host = not control and self._on_host(edge.dst)[0][edge.port]
        name = str(self.names[edge.src])
        source, output, at_source = edge.src, edge.output, []
        if control:
            source, output = self._add(edge.src, edge, _empty_constant(), name + "/ctrl"), 0
            self.parts.add_edge(edge.src, CONTROL_SLOT, source, CONTROL_SLOT)
            at_source.append(source)
        if sent_type != dtype:
            cast = self._add(edge.src, edge, _cast(dtype, sent_type, from_host), name)
            self.parts.add_edge(source, output, cast, 0)
            source, output = cast, 0
            at_source.append(source)
        transfer = self._describe(edge, name, sent_type)
        send = self._add(edge.src, edge, transfer_properties("_HostSend" if from_host else "_Send", transfer), name)
        self.parts.add_edge(source, output, send, 0)
        recv = self._add(edge.dst, edge, transfer_properties("_HostRecv" if to_host else "_Recv", transfer), name)
        if local:
            self.parts.add_edge(send, CONTROL_SLOT, recv, CONTROL_SLOT)
        arrival = _Arrival(self._behind_recv(edge, recv, sent_type, dtype, to_host), recv, 0)
        if self.options.scheduling_for_recvs:
            arrival.start_time = self._start_time(edge.dst)
            for number in [*at_source, send]:
                self.parts.set_start_time(number, self._start_time(edge.src))
        return arrival

    def _behind_recv(self, edge: _CutEdge, recv: int, sent: DataType, wanted: DataType, on_host: bool) -> int:
        """The node that consumers read: a cast back, an identity for control edges, or the recv itself."""
        if sent != wanted:
            properties = _cast(sent, wanted, on_host)
        elif edge.output == CONTROL_SLOT:
            properties = _float_identity()
        else:
            return recv
        node = self._add(edge.dst, edge, properties, str(self.names[edge.src]))
        self.parts.add_edge(recv, 0, node, 0)
        return node

    def _add(self, end: int, edge: _CutEdge, properties: NodeProperties, prefix: str) -> int:
        """Adds a generated node beside one end of an edge."""
        name = self.options.new_name(prefix)
        return self.parts.add_node(name, properties, self.location[end], self.devices[end], edge.dst)

    def _describe(self, edge: _CutEdge, src_name: str, dtype: DataType) -> Transfer:
        """What both ends say of the tensor."""
        send, recv = self.devices[edge.src], self.devices[edge.dst]
        return Transfer(
            f"edge_{edge.id}_{src_name}",
            self.device_names[send],
            self.device_names[recv],
            self.incarnations[send],
            dtype,
            src_name,
            str(self.names[edge.dst]),
        )

    def _cast_type(self, edge: _CutEdge, dtype: DataType) -> DataType:
        should_cast = self.options.should_cast
        return base_type((should_cast and should_cast(Edge(self.graph, edge.id))) or dtype)

    def _on_host(self, node_id: int) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """Which inputs and outputs of a node live in host memory."""
        properties, kind = self.graph.node_properties(node_id), self.device_types[self.devices[node_id]]
        key = id(properties), kind
        found = self._memory.get(key)
        if found is None:
            found = self._memory[key] = memory_types(properties, kind)
        return found

    def _arrives_on_host(self, edge: _CutEdge) -> bool:
        """Where a consumer wants a tensor, as far as sharing goes: a CPU has only host memory."""
        if self.device_types[self.devices[edge.dst]] == _CPU:
            return True
        return edge.port != CONTROL_SLOT and self._on_host(edge.dst)[0][edge.port]

    def _start_time(self, node_id: int) -> int:
        attrs = self.graph.node_properties(node_id).attrs
        if START_TIME in attrs:
            return int(attrs[START_TIME])
        name = self.graph.node_name(node_id)
        if self.options.need_to_record_start_times and name in self.options.start_times:
            return self.options.start_times[name]
        raise NotFoundError(f"No attr named {START_TIME!r} in NodeDef: {{{{node {name}}}}}", node=name)

    def _record_start_times(self) -> None:
        for node in self.graph.op_nodes():
            if START_TIME not in node.attrs:
                value = AttrValue(i=self._start_time(node.id))
                self.parts.replaced[node.id] = node.properties.with_attr(START_TIME, value)

    def _write_start_times(self) -> None:
        """Shared recvs start with their earliest consumer."""
        if self.options.scheduling_for_recvs:
            for arrival in self._arrivals.values():
                for number in {arrival.recv, arrival.node}:
                    self.parts.set_start_time(number, arrival.start_time)

    def _fill_in_incarnations(self) -> None:
        """Transfers of an earlier partitioning learn the incarnations that nobody knew then."""
        for i, properties in enumerate(self.properties):
            if properties is None or properties.op not in ("_Send", "_Recv"):
                continue
            attrs = properties.attrs
            if "send_device" in attrs and not attrs.get("send_device_incarnation"):
                incarnation = self.options.get_incarnation(attrs["send_device"].decode())
                base = self.parts.replaced.get(i, properties)
                self.parts.replaced[i] = base.with_attr("send_device_incarnation", AttrValue(i=incarnation))


@cache
def _empty_constant() -> NodeProperties:
    """The tensor that stands for a control edge between parts."""
    return properties_of("Const", {"dtype": DataType.FLOAT, "value": np.zeros(0, np.float32)})


@cache
def _float_identity() -> NodeProperties:
    return properties_of("Identity", {"T": DataType.FLOAT})


@cache
def _cast(source: DataType, target: DataType, on_host: bool) -> NodeProperties:
    attrs = {"SrcT": source, "DstT": target, "Truncate": target == DataType.BFLOAT16}
    return properties_of("_HostCast" if on_host else "Cast", attrs)


def _device_type(name: str) -> str:
    try:
        return parse_full_name(name).type or ""
    except InvalidArgumentError as error:
        raise InternalError(f"Malformed assigned device '{name}'", device=name) from error


def _check_no_loops(graph: Graph) -> None:
    for node in graph.op_nodes():
        if node.op in ("Enter", "RefEnter"):
            raise UnimplementedError(
                f"node {node.name!r} enters a loop; loops cannot be partitioned yet: use a graph without Enter nodes",
                node=node.name,
                op=node.op,
            )


def split_graph(graph: Graph, options: PartitionOptions | None = None) -> dict[str, Graph]:
    """Cuts a placed graph into one graph per location; `graph` stays as it is.

    Raises InvalidArgumentError for missing inputs, InternalError for malformed assigned devices, NotFoundError for missing
    start times when scheduling, UnimplementedError for loops.
    """
    _check_no_loops(graph)
    with collector_paused():
        return _Cut(graph, options or PartitionOptions()).run()


def partition(graph: Graph, options: PartitionOptions | None = None) -> dict[str, GraphDef]:
    """`split_graph`, each part as a GraphDef by location."""
    return {location: part.to_graph_def() for location, part in split_graph(graph, options).items()}
