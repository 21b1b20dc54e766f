"""The rules of the partitioned stage, which the graphs of a cut keep.

Each node of the graph that was cut is in one part, that of its location, on its device; the other nodes of the parts
belong to transfers. Every transfer is sent once and received once, on the devices it names, with the incarnation of the
sender. When every receive is replaced by the tensor that is sent to it, the parts together have the edges that the
graph had:

    a -> a/_0 _Send ~ a/_1 _Recv -> b        is the edge a -> b
    a -> a/ctrl/_0 Const -> _Send ~ _Recv -> Identity -> b        is the control edge a -> b

A tensor is received in the loop frame it is sent in, once per iteration: without a control loop the receive would be
outside of the frame. No edge within a device joins host to device memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ...errors import PartitaError
from ..analysis.control_flow import build_control_flow_info, has_frames
from ..analysis.transfers import TransferKey, TransferredTensor, transfer_of
from ..arrays import Flags, Numbers
from ..columns import CONTROL_SLOT, SINK_ID
from ..device_name import find_full_name
from ..dtypes import base_type
from ..graph import Graph
from ..invariants import Stage, check_loose_ends, check_structure, is_fed_or_received, num_open_ports
from ..node import Node
from ..ops.device_kinds import CPU, device_kind
from ..ops.memory_types import MemoryTypes, memory_types
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from ..port_table import PortTable
from .loops import is_gate
from .options import PartitionOptions, assigned_device

_LONGEST = 6  # nodes between a source and its consumer: constant, cast, send, recv, cast or identity, and the consumer


@dataclass(frozen=True, slots=True)
class _Part:
    """The graph of one location; `original` has, by node id, the id in the graph that was cut, -1 for new nodes."""

    location: str
    stage: Stage
    original: Numbers

    @property
    def is_original(self) -> Flags:
        """By id, whether a node comes from the graph that was cut; not source and sink, which every graph has."""
        return self.original > SINK_ID

    @property
    def is_new(self) -> Flags:
        """By id, whether cutting made the node."""
        return self.stage.live & (self.original < 0)


def _part(location: str, graph: Graph, whole: Graph) -> _Part:
    ids = [None if name is None else whole.find_id(name) for name in graph.names()]
    original = np.array([-1 if number is None else number for number in ids], np.int64)
    return _Part(location, Stage(f"partitioned (at {location!r})", graph), original)


def check_partitioned(partitions: Mapping[str, Graph], whole: Graph, options: PartitionOptions) -> None:
    """Raises InternalError for the first rule of the partitioned stage that does not hold.

    `whole` is the graph that was cut, with control flow moved and control loops added.
    """
    parts = [_part(location, graph, whole) for location, graph in partitions.items()]
    for part in parts:
        stage = part.stage
        check_structure(stage, types_fit=True, is_fed=partial(is_fed_or_received, stage.graph))
        if stage.graph is not whole:  # control loops are not hung on the source before the graph is cut
            check_loose_ends(stage)
        if num_open_ports(stage.graph):
            raise stage.broken("every input port reads a tensor", f"{num_open_ports(stage.graph)} do not")
        _check_places(part, whole, options)
        _check_memory(stage)
    _check_nodes(parts, whole)
    joined = _Joined(parts, whole)
    for part in parts:
        _check_ends(part.stage, joined.ends_of(part.stage), options)
    joined.check_keys()
    joined.check_edges()
    if has_frames(whole):
        _check_frames(parts, joined)


def _check_places(part: _Part, whole: Graph, options: PartitionOptions) -> None:
    """A node of the whole graph has the device that it had there, and is in the part of its location."""
    graph, original = part.stage.graph, part.original
    devices, names = graph.assigned_device_indices(), graph.device_names()
    before, names_before = whole.assigned_device_indices(), whole.device_names()
    index_before = {name: index for index, name in enumerate(names_before)}
    as_before = np.array([index_before.get(name, -1) for name in names])
    part.stage.no_node(
        "cutting moves no node",
        part.is_original & (as_before[devices] != before[original]),
        lambda node: f"is on {names[devices[node]]!r}, was on {names_before[before[original[node]]]!r}",
    )
    is_stray = np.zeros(len(original), np.bool_)
    if options.node_to_loc is assigned_device:
        is_stray = np.array([name != part.location for name in names])[devices]
    else:  # any function of a node
        mine = np.flatnonzero(part.is_original)
        is_stray[mine] = [options.node_to_loc(whole.node(i)) != part.location for i in original[mine].tolist()]
    part.stage.no_node(
        "a part has the nodes of its location",
        part.is_original & is_stray,
        lambda _node: f"is not of {part.location!r}",
    )
    part.stage.no_node(
        "a part has the nodes of its device",
        part.is_new & is_stray,
        lambda node: f"is on {names[devices[node]]!r}",
    )


def _check_memory(stage: Stage) -> None:
    """Host and device memory of one device meet in a transfer only."""
    graph, edges = stage.graph, stage.edges
    kinds, kind_of = graph.distinct_properties()
    types = [(name and (parsed := find_full_name(name)) and parsed.type) or CPU.name for name in graph.device_names()]
    devices = graph.assigned_device_indices()
    codes, index = np.unique(kind_of * len(types) + devices, return_inverse=True)
    facts = [_memory(kinds[c // len(types)], types[c % len(types)]) for c in codes.tolist()]
    inputs, outputs = PortTable([fact[0] for fact in facts]), PortTable([fact[1] for fact in facts])
    code = index.reshape(-1)
    from_host = outputs.at(code[edges.src], edges.src_output)
    to_host = inputs.at(code[edges.dst], edges.dst_input)
    on_device = np.array([device_kind(name).own_memory for name in types])[devices]
    inside = stage.is_data & on_device[edges.src] & (devices[edges.src] == devices[edges.dst])
    stage.no_edge("host and device memory meet in a transfer", inside & (from_host != to_host))


def _memory(kind: NodeProperties, device_type: str) -> MemoryTypes:
    """`memory_types`; a transfer, whose attrs its kind does not have, is in the memory that its op says."""
    if not kind.op_def.record.is_transfer:
        return memory_types(kind, device_type)
    on_host = kind.op_def.record.node_class in (NodeClass.HOST_SEND, NodeClass.HOST_RECV)
    return (on_host,) * len(kind.input_types), (on_host,) * len(kind.output_types)


def _check_nodes(parts: Sequence[_Part], whole: Graph) -> None:
    """No node of the whole graph is lost, doubled, or another one than it was."""
    names: set[str] = set()
    is_kept = np.zeros(whole.num_node_ids, np.bool_)
    for part in parts:
        graph = part.stage.graph
        mine = {name for name in list(graph.names())[SINK_ID + 1 :] if name is not None}
        if names & mine:
            name = min(names & mine)
            raise part.stage.broken("a node is in one part", f"{name!r} is in another as well", graph.find_id(name))
        names |= mine
        is_kept[part.original[part.is_original]] = True
        _check_kept(part, whole)
    rest = Stage("partitioned", whole)
    is_kept[: SINK_ID + 1] = True
    rest.no_node("no node is lost", rest.live & ~is_kept, lambda _node: "is in no part")


def _check_kept(part: _Part, whole: Graph) -> None:
    """Nodes have op and types that they had, and attrs as far as cutting adds none: compared once per pair of kinds."""
    kinds, kind_of = part.stage.graph.distinct_properties()
    kinds_before, kind_before = whole.distinct_properties()
    mine = np.flatnonzero(part.is_original)
    pairs = kind_of[mine] * len(kinds_before) + kind_before[part.original[mine]]
    codes, index = np.unique(pairs, return_inverse=True)
    changed = [not _is_same(kinds[c // len(kinds_before)], kinds_before[c % len(kinds_before)]) for c in codes.tolist()]
    is_changed = np.zeros(len(part.original), np.bool_)
    is_changed[mine] = np.array(changed, np.bool_)[index.reshape(-1)]
    part.stage.no_node(
        "cutting changes no node", is_changed, lambda node: f"was {whole.node(int(part.original[node]))!r}"
    )


def _is_same(kind: NodeProperties, before: NodeProperties) -> bool:
    return kind is before or (kind.op, kind.input_types, kind.output_types) == (
        before.op,
        before.input_types,
        before.output_types,
    )


@dataclass(frozen=True, slots=True)
class _End:
    """A generated send or receive: its number among all nodes of all parts, and what it transfers."""

    stage: Stage
    node: Node
    number: int
    transfer: TransferredTensor


class _Joined:
    """The parts as one graph: nodes are numbered part after part."""

    def __init__(self, parts: Sequence[_Part], whole: Graph) -> None:
        self.whole = whole
        self.stages = [part.stage for part in parts]
        counts = [len(part.original) for part in parts]
        self.first = dict(zip(map(id, self.stages), np.cumsum([0, *counts]).tolist(), strict=False))
        self.original: Numbers = np.concatenate([np.zeros(0, np.int64), *(part.original for part in parts)])
        self.sends: dict[TransferKey, _End] = {}
        self.receives: dict[TransferKey, _End] = {}
        for part in parts:
            self._add_ends(part)

    def _add_ends(self, part: _Part) -> None:
        stage = part.stage
        is_transfer = stage.graph.flags(lambda kind: kind.op_def.record.is_transfer)
        for number in np.flatnonzero(is_transfer & part.is_new).tolist():
            node = stage.graph.node(number)
            end = _End(stage, node, self.first[id(stage)] + number, transfer_of(node.properties))
            ends = self.sends if node.is_send else self.receives
            key = end.transfer.key
            if key in ends:
                both = f"{key} is at {node!r} and at {ends[key].node!r}"
                raise stage.broken("a key is sent once and received once", both, number)
            ends[key] = end

    def ends_of(self, stage: Stage) -> Sequence[_End]:
        """The ends of transfers in one part."""
        return [end for ends in (self.sends, self.receives) for end in ends.values() if end.stage is stage]

    def check_keys(self) -> None:
        """What is sent is received, and both ends say the same of it but for when they start."""
        for key, send in self.sends.items():
            if key not in self.receives:
                raise send.stage.broken("what is sent is received", f"{key} is not", send.node.id)
        for key, recv in self.receives.items():
            if key not in self.sends:
                raise recv.stage.broken("what is received is sent", f"{key} is not", recv.node.id)
            send = self.sends[key]
            sent, received = (end.transfer._replace(start_time=None)._asdict() for end in (send, recv))
            if sent != received:
                field = next(name for name in sent if sent[name] != received[name])
                both = f"{field} is {sent[field]!r} at {send.node!r} and {received[field]!r} at {recv.node!r}"
                raise recv.stage.broken("both ends of a transfer say the same", both, recv.node.id)

    def check_edges(self) -> None:
        """Read through transfers, the edges are those of the whole graph."""
        edges = self._edges()
        before = self.whole.edge_arrays()
        mine = (before.src > SINK_ID) & (before.dst > SINK_ID)
        rows = np.stack([c[mine] for c in (before.src, before.src_output, before.dst, before.dst_input)], axis=1)
        after, expected = (_sorted(self._without_gates(some)) for some in (edges, rows.astype(np.int64)))
        if len(after) == len(expected) and (after == expected).all():
            return
        lost, new = (set(map(tuple, some.tolist())) for some in (expected, after))
        stage = Stage("partitioned", self.whole)
        for verb, row in [("lost", row) for row in sorted(lost - new)] + [("new", row) for row in sorted(new - lost)]:
            src, output, dst, port = row
            text = f"the edge from {stage.text(src)!r}, port {output}, to {stage.text(dst)!r}, port {port} is {verb}"
            raise stage.broken("joined again, the parts have the edges of the graph", text, dst)
        raise stage.broken("joined again, the parts have the edges of the graph", "some are doubled")

    def _without_gates(self, rows: Numbers) -> Numbers:
        """The rows but for those that hold back a node until an iteration begins: cutting moves them to receives."""
        control = rows[:, 1] == CONTROL_SLOT
        gates = [i for i in np.unique(rows[control, 0]).tolist() if is_gate(self.whole, i)]
        kept: Flags = ~(control & np.isin(rows[:, 0], gates))
        return rows[kept]

    def _edges(self) -> Numbers:
        """Edges into original nodes, each from the original node it comes from: rows of (src, port, dst, port)."""
        columns = [np.zeros((0, 4), np.int64)]
        for stage in self.stages:
            edges, first = stage.edges, self.first[id(stage)]
            mine = (edges.src > SINK_ID) & (edges.dst > SINK_ID)
            ends = edges.src + first, edges.src_output, edges.dst + first, edges.dst_input
            columns.append(np.stack([column[mine] for column in ends], axis=1).astype(np.int64))
        rows = np.concatenate(columns)
        passed_on = self._passed_on(rows)
        rows = rows[self.original[rows[:, 2]] >= 0]
        for _ in range(_LONGEST):
            generated = self.original[rows[:, 0]] < 0
            rows[generated, :2] = passed_on[rows[generated, 0]]
        rows[:, 0], rows[:, 2] = self.original[rows[:, 0]], self.original[rows[:, 2]]
        return rows

    def _passed_on(self, rows: Numbers) -> Numbers:
        """By number of a generated node: the (node, port) whose value it passes on; itself where there is none."""
        passed_on = np.stack([np.arange(len(self.original)), np.zeros(len(self.original), np.int64)], axis=1)
        for kept in (rows[rows[:, 3] == CONTROL_SLOT], rows[rows[:, 3] == 0]):  # a constant has no data input
            passed_on[kept[:, 2]] = kept[:, :2]
        for key, recv in self.receives.items():
            passed_on[recv.number] = self.sends[key].number, 0
        return passed_on


def _sorted(rows: Numbers) -> Numbers:
    order: npt.NDArray[np.intp] = np.lexsort(rows.T[::-1])
    return rows[order]


def _check_ends(stage: Stage, ends: Sequence[_End], options: PartitionOptions) -> None:
    """A transfer names the device it is on, has the incarnation of the sending device, and the type of its port."""
    for end in ends:
        route, node = end.transfer.route, end.node
        named = route.send_device if node.is_send else route.recv_device
        if named != node.assigned_device:
            both = f"{node!r} on {node.assigned_device!r} says {named!r}"
            raise stage.broken("a transfer says where it is", both, node.id)
        if route.incarnation != options.get_incarnation(route.send_device):
            raise stage.broken(
                "a transfer has the incarnation of its sender", f"{node!r} says {route.incarnation}", node.id
            )
        port = node.input_types[0] if node.is_send else node.output_types[0]
        if base_type(port) != end.transfer.dtype:
            raise stage.broken("a transfer says its type", f"{node!r} says {end.transfer.dtype}, has {port}", node.id)


def _check_frames(parts: Sequence[_Part], joined: _Joined) -> None:
    """What is sent inside a loop is received inside it, so that every iteration has a receive of its own."""
    frames: dict[int, list[str]] = {}
    for part in parts:
        try:
            frames[id(part.stage)] = build_control_flow_info(part.stage.graph).frame_name
        except PartitaError as error:
            raise part.stage.broken("the frames of a part are well formed", str(error)) from error
    for key, recv in joined.receives.items():
        send = joined.sends[key]
        received_in, sent_in = frames[id(recv.stage)][recv.node.id], frames[id(send.stage)][send.node.id]
        if received_in != sent_in:
            both = f"{recv.node!r} is in frame {received_in!r}, {send.node!r} in {sent_in!r}"
            raise recv.stage.broken("a tensor is received in the frame it is sent in", both, recv.node.id)
