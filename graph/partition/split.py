"""Cutting a placed graph into one graph per location, connected by Send and Recv nodes.

Each cut edge gets a pair of a send and a receive, or shares the pair of an earlier edge: one output that several
consumers in one location want in the same memory is sent once. Edges of references share nothing: each has its own
pair, and its receive waits for the other inputs of the consumer.

Generated names equal TensorFlow's, so their order is fixed: consumers by ascending id, for each its data inputs by port
and then its control inputs, and for each pair the order of `pairs.PairNodes`.

    >>> b = GraphBuilder()
    >>> with b.device("/job:a/replica:0/task:0/device:CPU:0"):
    ...     x = b.constant([1.0, 2.0], name="x")
    ...     a = b.op("Neg", x, name="a")
    >>> with b.device("/job:a/replica:0/task:0/device:GPU:0"):
    ...     y = b.op("Exp", x, name="y")
    ...     with b.control_dependencies(a):
    ...         z = b.op("Add", x, y, name="z")
    >>> graph = b.graph()
    >>> for node in graph.op_nodes():  # as the placer does
    ...     node.assigned_device = node.requested_device
    >>> for device, part in partition(graph).items():
    ...     print(device)
    ...     for node in part.node:
    ...         print(f"  {node.name:11}{node.op:9}", *node.input)
    /job:a/replica:0/task:0/device:CPU:0
      x          Const
      a          Neg       x
      x/_0       _Send     x
      a/ctrl/_2  Const     ^a
      a/_3       _Send     a/ctrl/_2
    /job:a/replica:0/task:0/device:GPU:0
      y          Exp       x/_1
      x/_1       _Recv
      z          Add       x/_1 y ^a/_5
      a/_4       _Recv
      a/_5       Identity  a/_4

The tensor of x is sent once, though y and z both read it. The control edge from a to z is an empty tensor: a constant
that waits for a on the CPU is sent, and z waits for an identity of it on the GPU.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...collector import collector_paused
from ...errors import InvalidArgumentError
from ..analysis.control_flow import has_frames
from ..arrays import Flags, Numbers, distinct, positions
from ..checking import are_checked
from ..columns import CONTROL_SLOT, SINK_ID, EdgeArrays, Ids
from ..dtypes import REF_OFFSET, DataType, base_type
from ..edge_ends import EdgeEnds, all_edges, by_consumer
from ..graph import Graph
from ..graphdef.sources import check_graph
from ..node import Edge, Node
from ..port_table import PortTable
from ..protos import AttrValue, GraphDef
from .colocation import colocate_control_flow
from .cut_edges import CutEdges, CutPositions, PairNumbers
from .kind_column import KindColumn
from .loops import add_control_loops, is_gate
from .memories import Memories
from .options import PartitionOptions, assigned_device
from .pairs import TransferPairs
from .parts import Members, assemble
from .start_times import StartTimes


class _Cut:
    """The columns of one cut, and the steps that compute them."""

    def __init__(self, graph: Graph, options: PartitionOptions) -> None:
        num_given = graph.num_node_ids
        graph = self.graph = _with_loops(graph, options)
        self.options = options
        self.edges: EdgeArrays = graph.edge_arrays()
        self.devices = graph.assigned_device_indices()
        self.kinds = KindColumn(graph)
        self.memories = Memories(self.kinds, self.devices, graph.device_names())
        self.start_times = StartTimes(graph, options, num_given)
        self.locations, self.location_of = self._locate()
        self._check_complete()

    def _locate(self) -> tuple[list[str], Ids]:
        """All locations, and the index of each node's; -1 for source, sink and removed nodes."""
        live = [i for i in self.graph.node_ids() if i > SINK_ID]
        location_of = np.full(self.graph.num_node_ids, -1, np.int32)
        if self.options.node_to_loc is assigned_device:
            location_of[live] = self.devices[live]
            return list(self.graph.device_names()), location_of
        locations: dict[str, int] = {}
        for i in live:
            name = self.options.node_to_loc(Node(self.graph, i))
            location_of[i] = locations.setdefault(name, len(locations))
        return list(locations), location_of

    def _check_complete(self) -> None:
        """InvalidArgumentError for the first node with an input port that no edge enters."""
        data = self.edges.dst[self.edges.dst_input != CONTROL_SLOT]
        connected = np.bincount(data, minlength=self.graph.num_node_ids)
        declared = np.array([len(kind.input_types) for kind in self.kinds.kinds], np.int64)[self.kinds.of]
        for i in positions((connected != declared) & (self.kinds.of >= 0)).tolist():
            name, missing = self.graph.node_name(i), int(declared[i] - connected[i])
            raise InvalidArgumentError(f"Incomplete graph, missing {missing} inputs for {name}", node=name)

    def run(self) -> dict[str, Graph]:
        """Cuts, and returns the graph of each location."""
        inner = (self.edges.src > SINK_ID) & (self.edges.dst > SINK_ID)
        crosses = inner & (self.location_of[self.edges.src] != self.location_of[self.edges.dst])
        cut = crosses | self.memories.changes(self.edges, inner & ~crosses)
        rewritten = self._fill_in_incarnations() or self.options.need_to_record_start_times
        used = distinct(self.location_of[self.location_of >= 0])
        if len(used) == 1 and not cut.any() and not rewritten:
            return {self.locations[int(used[0])]: self.graph}
        gating = self._gating(inner & ~cut)
        edges = self._cut_edges(positions(cut), crosses)
        first, pair_of = edges.pairs()
        pairs = TransferPairs(edges, first, self._sent_types(edges, first), self.graph.num_node_ids)
        members = self._members(pairs, pair_of)
        joining = [
            pairs.joining_edges(pair_of),
            self._kept(inner & ~cut & ~gating),
            self._ref_order(pairs, pair_of),
            self._gates(pairs, positions(gating)),
        ]
        return assemble(self.graph, self.locations, members, all_edges(joining))

    def _members(self, pairs: TransferPairs, pair_of: PairNumbers) -> Members:
        """All nodes of all parts: those of the graph by id, and past them those of the pairs by number."""
        given = self.graph.num_node_ids
        names = pairs.names(self.graph, self.options.new_name)
        transfers = pairs.transfers(self.graph, self._incarnations())
        self.kinds.extend(*pairs.kinds())
        transfers.remarks = self._debug_infos(pairs)
        self.start_times.write(self.kinds, transfers, pairs, pair_of)
        beside, consumer = pairs.sides()
        # In its partition a node comes by ascending id, and a generated node right after the consumer it is for.
        keys = np.concatenate([np.arange(given) * 2, consumer.astype(np.int64) * 2 + 1])
        return Members(
            names=[*self.graph.names(), *names],
            kinds=self.kinds.kinds,
            kind_of=self.kinds.of,
            details=transfers,
            row=np.concatenate([np.full(given, -1, np.int32), pairs.rows()]),
            devices=np.concatenate([self.devices, self.devices[beside]]),
            locations=np.concatenate([self.location_of, self.location_of[beside]]),
            keys=keys,
        )

    def _debug_infos(self, pairs: TransferPairs) -> dict[str, bytes]:
        """By name of a producer its debug info, which all nodes that are generated for its edges get too."""
        by_kind = {i: kind.debug_info for i, kind in enumerate(self.kinds.kinds) if kind.remarks}
        known = [i for i, remarks in by_kind.items() if remarks]
        if not known:
            return {}
        sources, begin = pairs.sources(), self.graph.num_node_ids
        generated = positions(np.isin(self.kinds.of[sources], known)).tolist()
        infos = {n: by_kind[int(self.kinds.of[sources[n]])] for n in generated}
        for n, remarks in infos.items():
            if not self.kinds[begin + n].op_def.record.is_transfer:  # what tells transfers apart is in their table
                self.kinds.replace(begin + n, self.kinds[begin + n].with_remarks(remarks))
        return {self.graph.node_name(int(sources[n])): remarks for n, remarks in infos.items()}

    def _incarnations(self) -> list[int]:
        return [self.options.get_incarnation(name) if name else 0 for name in self.graph.device_names()]

    def _kept(self, kept: Flags) -> EdgeEnds:
        edges = self.edges
        return EdgeEnds(edges.src, edges.src_output, edges.dst, edges.dst_input).at(kept)

    def _cut_edges(self, cut: Numbers, crosses: Flags) -> CutEdges:
        """The cut edges, given by position among all edges, in the order of `CutEdges`."""
        at = cut[by_consumer(self.edges.dst[cut], self.edges.dst_input[cut])]
        src, output = self.edges.src[at], self.edges.src_output[at]
        dst, port = self.edges.dst[at], self.edges.dst_input[at]
        sent = PortTable([kind.output_types for kind in self.kinds.kinds]).at(self.kinds.of[src], output)
        read = PortTable([kind.input_types for kind in self.kinds.kinds]).at(self.kinds.of[dst], port)
        read = np.where(read > REF_OFFSET, read - REF_OFFSET, read)
        to_host = self.memories.inputs_on_host(dst, port)
        return CutEdges(
            edges=EdgeArrays(self.edges.id[at], src, output, dst, port),
            location=self.location_of[dst],
            from_host=self.memories.outputs_on_host(src, output),
            to_host=to_host,
            shared_host=to_host | self.memories.host_only[dst],
            is_ref=sent > REF_OFFSET,
            local=~crosses[at],
            dtype=np.where(output == CONTROL_SLOT, int(DataType.FLOAT), read),
        )

    def _sent_types(self, edges: CutEdges, first: CutPositions) -> Numbers:
        """Element type each pair is sent as; transfers within a device are never cast."""
        sent = edges.dtype[first]
        should_cast = self.options.should_cast
        if should_cast is not None:
            for pair in positions(~edges.local[first]).tolist():
                wanted = should_cast(Edge(self.graph, int(edges.edges.id[first[pair]])))
                sent[pair] = base_type(wanted) if wanted else sent[pair]
        return sent

    def _ref_order(self, pairs: TransferPairs, pair_of: PairNumbers) -> EdgeEnds:
        """Control edges from the other inputs of its consumer to the receive of a reference."""
        cut, nodes = pairs.edges, pairs.nodes
        rows: list[tuple[int, int]] = []
        for at in positions(cut.is_ref).tolist():
            consumer, recv = int(cut.edges.dst[at]), int(nodes.recv[pair_of[at]])
            others = nodes.arrival[pair_of[(cut.edges.dst == consumer) & ~cut.is_ref]].tolist()
            others += self._plain_inputs(consumer)
            rows += [(other, recv) for other in dict.fromkeys(others)]
        return _control_edges(rows)

    def _plain_inputs(self, consumer: int) -> list[int]:
        """Producers of a node that are in its location, except of references."""
        sources = []
        for at in positions((self.edges.dst == consumer) & (self.edges.src > SINK_ID)).tolist():
            src, output = int(self.edges.src[at]), int(self.edges.src_output[at])
            is_ref = output != CONTROL_SLOT and self.graph.node_properties(src).output_types[output] > REF_OFFSET
            if self.location_of[src] == self.location_of[consumer] and not is_ref:
                sources.append(src)
        return sources

    def _gating(self, kept: Flags) -> Flags:
        """Which edges come from the gate of a control loop."""
        if not has_frames(self.graph):
            return np.zeros_like(kept)
        gating: Flags = kept & (self.edges.src_output == CONTROL_SLOT)
        gates = [i for i in distinct(self.edges.src[gating]).tolist() if is_gate(self.graph, i)]
        gating &= np.isin(self.edges.src, gates)
        return gating

    def _gates(self, pairs: TransferPairs, gating: Numbers) -> EdgeEnds:
        """Edges from gates, moved from consumers to the receives that were generated for them, one per receive.

        A consumer has as many of these edges as receives, except in a worker: its import drops equal control edges.
        """
        rows: list[tuple[int, int]] = []
        gated = self.edges.dst[gating].tolist()
        gate_of = dict(zip(gated, self.edges.src[gating].tolist(), strict=True))
        num_unmoved = Counter(gated)
        if gate_of:
            remote = ~pairs.edges.local[pairs.first]
            consumers = pairs.edges.edges.dst[pairs.first][remote].tolist()
            for consumer, recv in zip(consumers, pairs.nodes.recv[remote].tolist(), strict=True):
                if consumer in gate_of:
                    num_unmoved[consumer] -= 1
                    rows.append((gate_of[consumer], recv))
        rows += [(gate_of[node], node) for node in num_unmoved.elements()]
        return _control_edges(rows)

    def _fill_in_incarnations(self) -> bool:
        """Writes incarnations that an earlier partitioning did not know into its transfers; whether there were any."""
        changed = False
        transfers = [i for i, kind in enumerate(self.kinds.kinds) if kind.op_def.record.is_transfer]
        for i in positions(np.isin(self.kinds.of, transfers)).tolist():
            attrs = self.graph.node_properties(i).attrs
            if "send_device" in attrs and not attrs.get("send_device_incarnation"):
                value = AttrValue(i=self.options.get_incarnation(attrs["send_device"].decode()))
                self.kinds.replace(i, self.kinds[i].with_attr("send_device_incarnation", value))
                changed = True
        return changed


def _control_edges(rows: list[tuple[int, int]]) -> EdgeEnds:
    """Control edges from rows of (producer, consumer)."""
    src, dst = np.array(rows, np.int64).reshape(-1, 2).T
    control = np.full(len(rows), CONTROL_SLOT)
    return EdgeEnds(src, control, dst, control)


def _with_loops(graph: Graph, options: PartitionOptions) -> Graph:
    """The graph that is cut: control flow moved to its data, and control loops added where loops cross devices."""
    if options.control_flow_added:
        return graph
    moved = colocate_control_flow(graph)
    if has_frames(graph):
        add_control_loops(moved, options.new_name)
    return moved


def split_graph(graph: Graph, options: PartitionOptions | None = None) -> dict[str, Graph]:
    """Cuts a placed graph into one graph per location, and does not change it.

    When all nodes are in one location and nothing has to be added, the result is `graph` itself. Raises
    InvalidArgumentError for missing inputs and malformed loops, InternalError for malformed assigned devices,
    NotFoundError for missing start times when receives are scheduled.
    """
    check_graph(graph)
    with collector_paused():
        cut = _Cut(graph, options or PartitionOptions())
        partitions = cut.run()
        if are_checked():
            from .invariants import check_partitioned

            check_partitioned(partitions, cut.graph, cut.options)
        return partitions


def partition(graph: Graph, options: PartitionOptions | None = None) -> dict[str, GraphDef]:
    """`split_graph`, each part as a GraphDef by location."""
    return {location: part.to_graph_def() for location, part in split_graph(graph, options).items()}
