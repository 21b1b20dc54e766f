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

import numpy as np
import numpy.typing as npt

from ...errors import InternalError, InvalidArgumentError, NotFoundError, UnimplementedError
from ..device_name import parse_full_name
from ..dtypes import DataType, base_type, is_ref
from ..graph import EdgeArrays, Graph, Ids
from ..memory_types import memory_types
from ..node import CONTROL_SLOT, SINK_ID, Edge, Node
from ..properties import NodeProperties, properties_of
from ..protos import AttrValue, GraphDef
from .options import PartitionOptions, assigned_device
from .parts import Parts
from .transfer import Transfer, TransferProperties, transfer_properties

_CPU = "CPU"
_START_TIME = "_start_time"


@dataclass(slots=True)
class _Arrival:
    """What consumers of one transferred tensor read: `node` (the recv, or the cast or identity behind it)."""

    node: int
    recv: int
    start_time: int


class _Cut:
    """One partitioning in progress."""

    def __init__(self, graph: Graph, options: PartitionOptions) -> None:
        self.graph = graph
        self.options = options
        self.edges: EdgeArrays = graph.edge_arrays()
        self.devices = graph.assigned_device_indices()
        self.device_names = graph.device_names()
        self.device_types = [_device_type(name) for name in self.device_names]
        locations, location_of = self._locate()
        self.location_of = location_of.tolist()
        self.parts = Parts(graph, locations, location_of)
        self.properties = graph.all_properties()
        self.arrivals: dict[tuple[int, int, int, bool], _Arrival] = {}
        self.empty = properties_of("Const", {"dtype": DataType.FLOAT, "value": np.zeros(0, np.float32)})

    def _locate(self) -> tuple[list[str], Ids]:
        """All locations, and the index of each node's; -1 for source and sink and removed nodes."""
        live = [i for i in self.graph.node_ids() if i > SINK_ID]
        location_of = np.full(self.graph.num_node_ids, -1, np.int32)
        if self.options.node_to_loc is assigned_device:
            location_of[live] = self.devices[live]
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
        where = np.array(self.location_of, np.int32)
        crosses = inner & (where[self.edges.src] != where[self.edges.dst])
        cut = crosses | self._memory_changes(inner & ~crosses)
        if self.options.need_to_record_start_times:
            self._record_start_times()
        for consumer, positions in self._by_consumer(np.flatnonzero(cut)):
            self._join(consumer, positions)
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
        on_device = np.array([kind != _CPU for kind in self.device_types])
        candidates = local & (self.edges.dst_input != CONTROL_SLOT) & on_device[self.devices[self.edges.src]]
        for at in np.flatnonzero(candidates).tolist():
            src, dst = int(self.edges.src[at]), int(self.edges.dst[at])
            if self.devices[src] == self.devices[dst]:
                sent_from_host = self._output_on_host(src, int(self.edges.src_output[at]))
                changes[at] = sent_from_host != self._input_on_host(dst, int(self.edges.dst_input[at]))
        return changes

    def _by_consumer(self, cut: npt.NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
        """Positions of cut edges grouped by consumer: data inputs by port, then control inputs."""
        port = self.edges.dst_input[cut]
        dst = self.edges.dst[cut]
        order = cut[np.lexsort((np.where(port == CONTROL_SLOT, 0, port), port == CONTROL_SLOT, dst))]
        consumers, starts = np.unique(self.edges.dst[order], return_index=True)
        bounds = [*starts.tolist(), len(order)]
        for i, consumer in enumerate(consumers.tolist()):
            yield consumer, order[bounds[i] : bounds[i + 1]].tolist()

    def _join(self, consumer: int, positions: list[int]) -> None:
        """Gives one consumer its cut inputs."""
        ref_recvs, arrived = [], []
        for at in positions:
            src, output = int(self.edges.src[at]), int(self.edges.src_output[at])
            control = output == CONTROL_SLOT
            host = self._arrives_on_host(consumer, int(self.edges.dst_input[at]))
            key = src, output, self.location_of[consumer], host
            arrival = self.arrivals.get(key)
            start = self._start_times(src, consumer)
            if arrival is None:
                arrival = self._transfer(at, start)
                if not control and is_ref(self._of(src).output_types[output]):
                    ref_recvs.append(arrival)
                else:
                    self.arrivals[key] = arrival
                    arrived.append(arrival.node)
            else:
                arrival.start_time = min(arrival.start_time, start[1])
                arrived.append(arrival.node)
            port = CONTROL_SLOT if control else 0
            self.parts.add_edge(arrival.node, port, consumer, int(self.edges.dst_input[at]))
        if ref_recvs:
            self._order_after_inputs(consumer, ref_recvs, arrived)

    def _order_after_inputs(self, consumer: int, ref_recvs: list[_Arrival], arrived: list[int]) -> None:
        """Makes the recvs of reference edges wait for every other input of their consumer."""
        others = list(arrived)
        for at in np.flatnonzero(self.edges.dst == consumer).tolist():
            src, output = int(self.edges.src[at]), int(self.edges.src_output[at])
            local = src > SINK_ID and self.location_of[src] == self.location_of[consumer]
            if local and (output == CONTROL_SLOT or not is_ref(self._of(src).output_types[output])):
                others.append(src)
        for arrival in ref_recvs:
            self._set_start_time(arrival.recv, arrival.start_time)
            if arrival.node != arrival.recv:
                self._set_start_time(arrival.node, arrival.start_time)
            for other in dict.fromkeys(others):
                self.parts.add_edge(other, CONTROL_SLOT, arrival.recv, CONTROL_SLOT)

    def _transfer(self, at: int, start: tuple[int, int]) -> _Arrival:
        """Adds the nodes that carry one edge; returns what its consumers read."""
        src, output = int(self.edges.src[at]), int(self.edges.src_output[at])
        dst, port = int(self.edges.dst[at]), int(self.edges.dst_input[at])
        control = output == CONTROL_SLOT
        local = self.location_of[src] == self.location_of[dst]
        dtype = DataType.FLOAT if control else base_type(self._of(dst).input_types[port])
        sent_type = dtype if local or self.options.should_cast is None else self._cast_type(at, dtype)
        from_host = not control and self._output_on_host(src, output)
        to_host = not control and self._input_on_host(dst, port)
        generated = _Generator(self, src, dst)
        source, source_output = src, output
        if control:
            source, source_output = generated.add_source(self.empty, f"{generated.src_name}/ctrl"), 0
            self.parts.add_edge(src, CONTROL_SLOT, source, CONTROL_SLOT)
        if sent_type != dtype:
            cast = generated.add_source(_cast(dtype, sent_type, from_host))
            self.parts.add_edge(source, source_output, cast, 0)
            source, source_output = cast, 0
        transfer = generated.transfer(f"edge_{self.edges.id[at]}_{generated.src_name}", sent_type)
        send = generated.add_source(transfer_properties("_HostSend" if from_host else "_Send", transfer))
        self.parts.add_edge(source, source_output, send, 0)
        recv = generated.add_target(transfer_properties("_HostRecv" if to_host else "_Recv", transfer))
        if local:
            self.parts.add_edge(send, CONTROL_SLOT, recv, CONTROL_SLOT)
        node = recv
        if sent_type != dtype:
            node = generated.add_target(_cast(sent_type, dtype, to_host))
        elif control:
            node = generated.add_target(properties_of("Identity", {"T": dtype}))
        if node != recv:
            self.parts.add_edge(recv, 0, node, 0)
        if self.options.scheduling_for_recvs:
            for number in generated.at_source:
                self._set_start_time(number, start[0])
        return _Arrival(node, recv, start[1])

    def _cast_type(self, at: int, dtype: DataType) -> DataType:
        assert self.options.should_cast is not None
        return base_type(self.options.should_cast(Edge(self.graph, int(self.edges.id[at]))) or dtype)

    def _of(self, node_id: int) -> NodeProperties:
        return self.graph.node_properties(node_id)

    def _output_on_host(self, node_id: int, output: int) -> bool:
        return memory_types(self._of(node_id), self.device_types[self.devices[node_id]])[1][output]

    def _input_on_host(self, node_id: int, port: int) -> bool:
        return memory_types(self._of(node_id), self.device_types[self.devices[node_id]])[0][port]

    def _arrives_on_host(self, consumer: int, port: int) -> bool:
        """Where a consumer wants a tensor, as far as sharing goes: a CPU has only host memory."""
        if self.device_types[self.devices[consumer]] == _CPU:
            return True
        return port != CONTROL_SLOT and self._input_on_host(consumer, port)

    def _start_times(self, src: int, dst: int) -> tuple[int, int]:
        if not self.options.scheduling_for_recvs:
            return 0, 0
        return self._start_time(src), self._start_time(dst)

    def _start_time(self, node_id: int) -> int:
        attrs = self._of(node_id).attrs
        if _START_TIME in attrs:
            return int(attrs[_START_TIME])
        name = self.graph.node_name(node_id)
        if self.options.need_to_record_start_times and name in self.options.start_times:
            return self.options.start_times[name]
        raise NotFoundError(f"No attr named {_START_TIME!r} in NodeDef: {{{{node {name}}}}}", node=name)

    def _record_start_times(self) -> None:
        for node in self.graph.op_nodes():
            if _START_TIME not in node.attrs:
                value = AttrValue(i=self._start_time(node.id))
                self.parts.replaced[node.id] = node.properties.with_attr(_START_TIME, value)

    def _set_start_time(self, number: int, start_time: int) -> None:
        index = number - self.parts.first_generated
        old = self.parts.properties[index]
        if isinstance(old, TransferProperties):
            self.parts.properties[index] = old.started_at(start_time)
        else:
            self.parts.properties[index] = old.with_attr(_START_TIME, AttrValue(i=start_time))

    def _write_start_times(self) -> None:
        """Shared recvs start with their earliest consumer."""
        if self.options.scheduling_for_recvs:
            for arrival in self.arrivals.values():
                for number in {arrival.recv, arrival.node}:
                    self._set_start_time(number, arrival.start_time)

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


class _Generator:
    """Makes the nodes that carry one edge, all named after its source."""

    def __init__(self, cut: _Cut, src: int, dst: int) -> None:
        self._cut = cut
        self._src, self._dst = src, dst
        self.src_name = cut.graph.node_name(src)
        self.at_source: list[int] = []

    def _add(self, end: int, properties: NodeProperties, prefix: str) -> int:
        cut = self._cut
        location, device = cut.location_of[end], int(cut.devices[end])
        return cut.parts.add_node(cut.options.new_name(prefix), properties, location, device, self._dst)

    def add_source(self, properties: NodeProperties, prefix: str = "") -> int:
        """A node on the sending side."""
        self.at_source.append(self._add(self._src, properties, prefix or self.src_name))
        return self.at_source[-1]

    def add_target(self, properties: NodeProperties) -> int:
        """A node on the receiving side."""
        return self._add(self._dst, properties, self.src_name)

    def transfer(self, tensor_name: str, dtype: DataType) -> Transfer:
        """What both ends say of the tensor."""
        cut = self._cut
        send_device = cut.device_names[cut.devices[self._src]]
        recv_device = cut.device_names[cut.devices[self._dst]]
        incarnation = cut.options.get_incarnation(send_device)
        dst_name = cut.graph.node_name(self._dst)
        return Transfer(tensor_name, send_device, recv_device, incarnation, dtype, self.src_name, dst_name)


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
    return _Cut(graph, options or PartitionOptions()).run()


def partition(graph: Graph, options: PartitionOptions | None = None) -> dict[str, GraphDef]:
    """`split_graph`, each part as a GraphDef by location."""
    return {location: part.to_graph_def() for location, part in split_graph(graph, options).items()}
