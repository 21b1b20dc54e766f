"""Cutting a placed graph: one graph per location, joined by Send and Recv nodes.

Flows in: a graph whose nodes all have an assigned device, and options. Flows out: a graph per location
(`split_graph`), or GraphDefs (`partition`). Always holds: every cut edge becomes, or shares, one pair of transfer
nodes; consumers are visited by ascending id, their data inputs by port, then their control inputs, and names are
drawn in the order constant, cast, send, recv, cast or identity, so that all names equal TensorFlow's.

A pair is shared by all consumers of one output in one location that want it in the same memory. Reference edges share
nothing: each has its own pair, and its recv waits for the consumer's other inputs.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from ...errors import InternalError, InvalidArgumentError, NotFoundError
from ..analysis.transfers import TransferTable
from ..collector import collector_paused
from ..columns import CONTROL_SLOT, SINK_ID, EdgeArrays, Ids
from ..device_name import parse_full_name
from ..dtypes import REF_OFFSET, DataType, base_type
from ..graph import Graph
from ..graphdef.sources import check_graph
from ..invariants import are_checked
from ..node import Edge, Node
from ..ops.device_kinds import device_kind
from ..ops.memory_types import memory_types
from ..ops.properties import NodeProperties
from ..port_table import PortTable
from ..protos import AttrValue, GraphDef
from .colocation import colocate_control_flow
from .invariants import check_partitioned
from .loops import add_control_loops, has_frames, is_gate
from .options import START_TIME, PartitionOptions, assigned_device
from .pairs import CutEdges, Flags, Numbers, Pairs
from .parts import Members, assemble


class _Cut:
    """One partitioning in progress."""

    def __init__(self, graph: Graph, options: PartitionOptions) -> None:
        self.num_given = graph.num_node_ids
        graph = self.graph = _with_loops(graph, options)
        self.options = options
        self.edges: EdgeArrays = graph.edge_arrays()
        self.devices = graph.assigned_device_indices()
        self.device_types = [_device_type(name) for name in graph.device_names()]
        self.host_only = np.array([not device_kind(name).own_memory for name in self.device_types])[self.devices]
        self.locations, self.location_of = self._locate()
        kinds, kind_of = graph.distinct_properties()
        self.kinds, self.kind_of = list(kinds), kind_of.copy()
        for i in np.flatnonzero(graph.details()[1] >= 0).tolist():  # transfers of an earlier partitioning
            self._replace(i, graph.node_properties(i))
        self._check_complete()

    def _locate(self) -> tuple[list[str], Ids]:
        """All locations, and the index of each node's; -1 for source, sink and removed nodes."""
        live = [i for i in self.graph.node_ids() if i > SINK_ID]
        location_of = np.full(self.graph.num_node_ids, -1, np.int32)
        if self.options.node_to_loc is assigned_device:
            location_of[live] = self.devices[live]
            return list(self.graph.device_names()), location_of
        found: dict[str, int] = {}
        for i in live:
            name = self.options.node_to_loc(Node(self.graph, i))
            location_of[i] = found.setdefault(name, len(found))
        return list(found), location_of

    def _check_complete(self) -> None:
        data = self.edges.dst[self.edges.dst_input != CONTROL_SLOT]
        connected = np.bincount(data, minlength=self.graph.num_node_ids)
        declared = np.array([len(kind.input_types) for kind in self.kinds], np.int64)[self.kind_of]
        for i in np.flatnonzero((connected != declared) & (self.kind_of >= 0)).tolist():
            name, missing = self.graph.node_name(i), int(declared[i] - connected[i])
            raise InvalidArgumentError(f"Incomplete graph, missing {missing} inputs for {name}", node=name)

    def _properties(self, number: int) -> NodeProperties:
        return self.kinds[int(self.kind_of[number])]

    def _replace(self, number: int, properties: NodeProperties) -> None:
        """Gives one node properties of its own."""
        self.kind_of[number] = len(self.kinds)
        self.kinds.append(properties)

    def run(self) -> dict[str, Graph]:
        """Cuts, and returns the graph of each location."""
        inner = (self.edges.src > SINK_ID) & (self.edges.dst > SINK_ID)
        crosses = inner & (self.location_of[self.edges.src] != self.location_of[self.edges.dst])
        cut = crosses | self._changes_memory(inner & ~crosses)
        rewritten = self._fill_in_incarnations() or self.options.need_to_record_start_times
        used = np.unique(self.location_of[self.location_of >= 0])
        if len(used) == 1 and not cut.any() and not rewritten:
            return {self.locations[int(used[0])]: self.graph}
        gating = self._gating(inner & ~cut)
        edges = self._cut_edges(np.flatnonzero(cut), crosses)
        first, pair_of = edges.groups()
        pairs = Pairs(edges, first, self._sent_types(edges, first), self.graph.num_node_ids)
        names = pairs.names(self.graph, self.options.new_name)
        transfers = pairs.transfers(self.graph, self._incarnations())
        generated, generated_kind = pairs.kinds()
        self.kind_of = np.concatenate([self.kind_of, generated_kind + len(self.kinds)])
        self.kinds += generated
        beside, consumer = pairs.sides()
        joining = [
            pairs.joining_edges(pair_of),
            self._kept(inner & ~cut & ~gating),
            self._ref_order(pairs, pair_of),
            self._gates(pairs, np.flatnonzero(gating)),
        ]
        self._write_start_times(pairs, pair_of, transfers)
        members = Members(
            [*self.graph.names(), *names],
            self.kinds,
            self.kind_of,
            transfers,
            np.concatenate([np.full(self.graph.num_node_ids, -1, np.int32), pairs.rows()]),
            np.concatenate([self.devices, self.devices[beside]]),
            np.concatenate([self.location_of, self.location_of[beside]]),
            np.concatenate([np.arange(len(self.devices)) * 2, consumer.astype(np.int64) * 2 + 1]),
        )
        return assemble(self.graph, self.locations, members, np.concatenate(joining))

    def _incarnations(self) -> list[int]:
        return [self.options.get_incarnation(name) if name else 0 for name in self.graph.device_names()]

    def _kept(self, kept: Flags) -> npt.NDArray[np.int32]:
        edges = self.edges
        return np.stack([c[kept] for c in (edges.src, edges.src_output, edges.dst, edges.dst_input)], axis=1)

    def _on_host(self, node: Ids, port: Ids, *, outputs: bool) -> Flags:
        """Whether port `port[k]` of node `node[k]` is in host memory, for all k; control ports are not."""
        if not len(node):
            return np.zeros(0, np.bool_)
        code = self.kind_of[node] * len(self.device_types) + self.devices[node]
        codes, index = np.unique(code, return_inverse=True)
        facts = []
        for kind, device in (divmod(c, len(self.device_types)) for c in codes.tolist()):
            facts.append(memory_types(self.kinds[kind], self.device_types[device])[1 if outputs else 0])
        return PortTable(facts).at(index.reshape(-1), port).astype(np.bool_)

    def _changes_memory(self, local: Flags) -> Flags:
        """Which local data edges join host to device memory of one device, and so need a transfer."""
        same_device = self.devices[self.edges.src] == self.devices[self.edges.dst]
        candidates = local & (self.edges.dst_input != CONTROL_SLOT) & ~self.host_only[self.edges.src] & same_device
        at = np.flatnonzero(candidates)
        from_host = self._on_host(self.edges.src[at], self.edges.src_output[at], outputs=True)
        to_host = self._on_host(self.edges.dst[at], self.edges.dst_input[at], outputs=False)
        changes = np.zeros_like(local)
        changes[at] = from_host != to_host
        return changes

    def _cut_edges(self, cut: Numbers, crosses: Flags) -> CutEdges:
        """The cut edges by consumer: data inputs by port, then control inputs."""
        port, dst = self.edges.dst_input[cut], self.edges.dst[cut]
        at = cut[np.lexsort((np.where(port == CONTROL_SLOT, 0, port), port == CONTROL_SLOT, dst))]
        src, output = self.edges.src[at], self.edges.src_output[at]
        dst, port = self.edges.dst[at], self.edges.dst_input[at]
        sent = PortTable([kind.output_types for kind in self.kinds]).at(self.kind_of[src], output)
        read = PortTable([kind.input_types for kind in self.kinds]).at(self.kind_of[dst], port)
        read = np.where(read > REF_OFFSET, read - REF_OFFSET, read)
        from_host = self._on_host(src, output, outputs=True)
        to_host = self._on_host(dst, port, outputs=False)
        return CutEdges(
            self.edges.id[at],
            src,
            output,
            dst,
            port,
            self.location_of[dst],
            from_host,
            to_host,
            to_host | self.host_only[dst],
            sent > REF_OFFSET,
            ~crosses[at],
            np.where(output == CONTROL_SLOT, int(DataType.FLOAT), read),
        )

    def _sent_types(self, edges: CutEdges, first: Numbers) -> Numbers:
        """Element type each pair is sent as; transfers within a device are never cast."""
        sent = edges.dtype[first]
        should_cast = self.options.should_cast
        if should_cast is not None:
            for pair in np.flatnonzero(~edges.local[first]).tolist():
                wanted = should_cast(Edge(self.graph, int(edges.id[first[pair]])))
                sent[pair] = base_type(wanted) if wanted else sent[pair]
        return sent

    def _ref_order(self, pairs: Pairs, pair_of: Numbers) -> npt.NDArray[np.int32]:
        """Control edges that make the recv of a reference edge wait for the other inputs of its consumer."""
        edges = pairs.edges
        rows: list[tuple[int, int, int, int]] = []
        for at in np.flatnonzero(edges.is_ref).tolist():
            consumer, recv = int(edges.dst[at]), int(pairs.recv[pair_of[at]])
            others = pairs.arrival[pair_of[(edges.dst == consumer) & ~edges.is_ref]].tolist()
            others += self._plain_inputs(consumer)
            rows += [(other, CONTROL_SLOT, recv, CONTROL_SLOT) for other in dict.fromkeys(others)]
        return np.array(rows, np.int32).reshape(-1, 4)

    def _gating(self, kept: Flags) -> Flags:
        """Which edges tell a node that an iteration of its control loop has begun."""
        if not has_frames(self.graph):
            return np.zeros_like(kept)
        gating: Flags = kept & (self.edges.src_output == CONTROL_SLOT)
        gates = [i for i in np.unique(self.edges.src[gating]).tolist() if is_gate(self.graph, i)]
        gating &= np.isin(self.edges.src, gates)
        return gating

    def _gates(self, pairs: Pairs, gating: Numbers) -> npt.NDArray[np.int32]:
        """Gating edges, moved from a consumer to the receives made for it, each of which gets one.

        A consumer has as many as receives, but for a worker, whose import has dropped all but the first.
        """
        if not len(gating):
            return np.zeros((0, 4), np.int32)
        rows: list[tuple[int, int, int, int]] = []
        edges = pairs.edges
        gated = self.edges.dst[gating].tolist()
        gate_of, left = dict(zip(gated, self.edges.src[gating].tolist(), strict=True)), Counter(gated)
        remote = ~edges.local[pairs.first]
        for consumer, recv in zip(edges.dst[pairs.first][remote].tolist(), pairs.recv[remote].tolist(), strict=True):
            if consumer in gate_of:
                left[consumer] -= 1
                rows.append((gate_of[consumer], CONTROL_SLOT, recv, CONTROL_SLOT))
        rows += [(gate_of[node], CONTROL_SLOT, node, CONTROL_SLOT) for node in left.elements()]
        return np.array(rows, np.int32).reshape(-1, 4)

    def _plain_inputs(self, consumer: int) -> list[int]:
        """Sources of a node in its own location, except of references."""
        found = []
        for at in np.flatnonzero((self.edges.dst == consumer) & (self.edges.src > SINK_ID)).tolist():
            src, output = int(self.edges.src[at]), int(self.edges.src_output[at])
            is_ref = output != CONTROL_SLOT and self.graph.node_properties(src).output_types[output] > REF_OFFSET
            if self.location_of[src] == self.location_of[consumer] and not is_ref:
                found.append(src)
        return found

    def _write_start_times(self, pairs: Pairs, pair_of: Numbers, transfers: TransferTable) -> None:
        """Start times of the nodes themselves, and of transfers: a shared recv starts with its earliest consumer."""
        edges = pairs.edges
        if self.options.need_to_record_start_times:
            for node in self.graph.op_nodes():
                if START_TIME not in node.attrs:
                    self._replace(node.id, _started_at(self._properties(node.id), self._start_time(node.id)))
        scheduled = self.options.scheduling_for_recvs
        arrives = np.zeros(len(pairs.first), np.int64)
        if scheduled:
            arrives[:] = np.iinfo(np.int64).max
            np.minimum.at(arrives, pair_of, np.array([self._start_time(i) for i in edges.dst.tolist()], np.int64))
        for pair in np.flatnonzero(edges.is_ref[pairs.first] | scheduled).tolist():
            leaves = self._start_time(int(edges.src[pairs.first[pair]])) if scheduled else None
            for number in range(int(pairs.const[pair]), int(pairs.arrival[pair]) + 1):
                time = leaves if number <= pairs.send[pair] else int(arrives[pair])
                if time is None:
                    continue
                if pairs.send[pair] <= number <= pairs.recv[pair]:
                    transfers.starts[pair, number == pairs.recv[pair]] = time
                else:
                    self._replace(number, _started_at(self._properties(number), time))

    def _start_time(self, node_id: int) -> int:
        attrs = self.graph.node_properties(node_id).attrs
        if START_TIME in attrs:
            return int(attrs[START_TIME])
        name = self.graph.node_name(node_id)
        if self.options.need_to_record_start_times:
            if node_id >= self.num_given:
                return self.options.start_time_of_loop_nodes
            if name in self.options.start_times:
                return self.options.start_times[name]
        raise NotFoundError(f"No attr named {START_TIME!r} in NodeDef: {{{{node {name}}}}}", node=name)

    def _fill_in_incarnations(self) -> bool:
        """Transfers of an earlier partitioning learn the incarnations nobody knew then; whether there were any."""
        changed = False
        transfers = [i for i, kind in enumerate(self.kinds) if kind.op_def.record.is_transfer]
        for i in np.flatnonzero(np.isin(self.kind_of, transfers)).tolist():
            attrs = self.graph.node_properties(i).attrs
            if "send_device" in attrs and not attrs.get("send_device_incarnation"):
                value = AttrValue(i=self.options.get_incarnation(attrs["send_device"].decode()))
                self._replace(i, self._properties(i).with_attr("send_device_incarnation", value))
                changed = True
        return changed


def _started_at(properties: NodeProperties, microseconds: int) -> NodeProperties:
    return properties.with_attr(START_TIME, AttrValue(i=microseconds))


def _device_type(name: str) -> str:
    try:
        return parse_full_name(name).type or ""
    except InvalidArgumentError as error:
        raise InternalError(f"Malformed assigned device '{name}'", device=name) from error


def _with_loops(graph: Graph, options: PartitionOptions) -> Graph:
    """The graph that is cut: with control flow beside its data, and control loops where loops cross devices."""
    if options.control_flow_added:
        return graph
    moved = colocate_control_flow(graph)
    if has_frames(graph):
        add_control_loops(moved, options.new_name)
    return moved


def split_graph(graph: Graph, options: PartitionOptions | None = None) -> dict[str, Graph]:
    """Cuts a placed graph into one graph per location; `graph` stays as it is.

    A graph that lies in one location already is its own only part, the same object. Raises InvalidArgumentError for
    missing inputs and malformed loops, InternalError for malformed assigned devices, NotFoundError for missing start
    times when scheduling.
    """
    check_graph(graph)
    with collector_paused():
        cut = _Cut(graph, options or PartitionOptions())
        partitions = cut.run()
        if are_checked():
            check_partitioned(partitions, cut.graph, cut.options)
        return partitions


def partition(graph: Graph, options: PartitionOptions | None = None) -> dict[str, GraphDef]:
    """`split_graph`, each part as a GraphDef by location."""
    return {location: part.to_graph_def() for location, part in split_graph(graph, options).items()}
