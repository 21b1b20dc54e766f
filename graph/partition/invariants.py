"""What holds of the graphs of a cut: the partitioned stage.

Each node of the graph that was cut is in one part, that of its location, on its device; what the parts have besides
are the nodes of transfers. Every transfer is sent once and received once, on the devices it names, with the incarnation
of the sender. Joined again, by reading for every tensor that arrives the one that was sent, the parts have the edges
that the graph had:

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
from ..analysis.control_flow import build_control_flow_info
from ..analysis.transfers import Transfer, transfer_of
from ..columns import CONTROL_SLOT, SINK_ID
from ..device_name import find_full_name
from ..dtypes import base_type
from ..graph import Graph
from ..invariants import Mask, Stage, check_loose_ends, check_structure, num_open_ports
from ..node import Node
from ..ops.memory_types import MemoryTypes, memory_types
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from ..port_table import PortTable
from .loops import has_frames, is_gate
from .options import PartitionOptions, assigned_device

_CPU = "CPU"
_LONGEST = 6  # nodes between a source and its consumer: constant, cast, send, recv, cast or identity, and the consumer
Numbers = npt.NDArray[np.int64]


def check_partitioned(partitions: Mapping[str, Graph], whole: Graph, options: PartitionOptions) -> None:
    """Raises InternalError for the first rule of the partitioned stage that does not hold.

    `whole` is the graph that was cut, with control flow moved and control loops added.
    """
    stages = {name: Stage(f"partitioned (at {name!r})", part) for name, part in partitions.items()}
    for location, stage in stages.items():
        check_structure(stage, types_fit=True, is_fed=partial(_is_fed, stage.graph))
        if stage.graph is not whole:  # control loops are not hung on the source before the graph is cut
            check_loose_ends(stage)
        if num_open_ports(stage.graph):
            raise stage.broken("every input port reads a tensor", f"{num_open_ports(stage.graph)} do not")
        _check_places(stage, location, whole, options)
        _check_memory(stage)
    _check_nodes(stages, whole)
    joined = _Joined(stages, whole)
    for stage in stages.values():
        _check_ends(stage, joined, options)
    joined.check_keys()
    joined.check_edges()
    if has_frames(whole):
        _check_frames(stages, joined)


def _is_fed(graph: Graph, node: int) -> bool:
    """Whether a node may stand for a fed tensor, or for one that came from another device."""
    return graph.node_properties(node).op_def.record.node_class in (NodeClass.ARG, NodeClass.RECV)


def _check_places(stage: Stage, location: str, whole: Graph, options: PartitionOptions) -> None:
    """A node of the whole graph has the device that it had there, and is where that belongs."""
    for node in stage.graph.op_nodes():
        original = whole.find_node(node.name)
        if original is None:
            if options.node_to_loc is assigned_device and node.assigned_device != location:
                raise stage.broken("a part has the nodes of its device", f"{node!r}: {node.assigned_device!r}", node.id)
            continue
        if node.assigned_device != original.assigned_device:
            found = f"{node!r} is on {node.assigned_device!r}, was on {original.assigned_device!r}"
            raise stage.broken("cutting moves no node", found, node.id)
        if options.node_to_loc(original) != location:
            raise stage.broken("a part has the nodes of its location", f"{original!r} is not of {location!r}", node.id)


def _check_memory(stage: Stage) -> None:
    """Host and device memory of one device meet in a transfer only."""
    graph, edges = stage.graph, stage.edges
    kinds, kind_of = graph.distinct_properties()
    types = [(name and (parsed := find_full_name(name)) and parsed.type) or _CPU for name in graph.device_names()]
    devices = graph.assigned_device_indices()
    codes, index = np.unique(kind_of * len(types) + devices, return_inverse=True)
    facts = [_memory(kinds[c // len(types)], types[c % len(types)]) for c in codes.tolist()]
    inputs, outputs = PortTable([fact[0] for fact in facts]), PortTable([fact[1] for fact in facts])
    code = index.reshape(-1)
    from_host = outputs.at(code[edges.src], edges.src_output)
    to_host = inputs.at(code[edges.dst], edges.dst_input)
    on_device = np.array([kind != _CPU for kind in types])[devices]
    inside = stage.is_data & on_device[edges.src] & (devices[edges.src] == devices[edges.dst])
    stage.no_edge("host and device memory meet in a transfer", inside & (from_host != to_host))


def _memory(kind: NodeProperties, device_type: str) -> MemoryTypes:
    """`memory_types`; a transfer, whose attrs its kind does not have, is in the memory that its op says."""
    if not kind.op_def.record.is_transfer:
        return memory_types(kind, device_type)
    on_host = kind.op_def.record.node_class in (NodeClass.HOST_SEND, NodeClass.HOST_RECV)
    return (on_host,) * len(kind.input_types), (on_host,) * len(kind.output_types)


def _check_nodes(stages: Mapping[str, Stage], whole: Graph) -> None:
    """No node of the whole graph is lost, doubled, or another one than it was."""
    home: dict[str, Stage] = {}
    for stage in stages.values():
        for node in stage.graph.op_nodes():
            if node.name in home:
                raise stage.broken("a node is in one part", f"{node!r} is in another as well", node.id)
            home[node.name] = stage
            original = whole.find_node(node.name)
            if original is not None and not _is_same(node, original):
                raise stage.broken("cutting changes no node", f"{node!r} was {original!r}", node.id)
    for node in whole.op_nodes():
        if node.name not in home:
            raise Stage("partitioned", whole).broken("no node is lost", f"{node!r} is in no part", node.id)


def _is_same(node: Node, original: Node) -> bool:
    """Whether a node is the original: the same op with the same types, and attrs as far as cutting adds none."""
    mine, other = node.properties, original.properties
    return mine is other or (mine.op, mine.input_types, mine.output_types) == (
        other.op,
        other.input_types,
        other.output_types,
    )


@dataclass(frozen=True, slots=True)
class _End:
    """A generated send or receive: its number among all nodes of all parts, and what it transfers."""

    stage: Stage
    node: Node
    number: int
    transfer: Transfer

    @property
    def key(self) -> tuple[str, str, str]:
        """Where both ends of a transfer meet; incarnation and type are checked, not matched."""
        return self.transfer.tensor_name, self.transfer.route.send_device, self.transfer.route.recv_device


class _Joined:
    """The parts as one graph: nodes are numbered part after part."""

    def __init__(self, stages: Mapping[str, Stage], whole: Graph) -> None:
        self.whole = whole
        self.stages = list(stages.values())
        counts = [len(stage.live) for stage in self.stages]
        self.first = dict(zip(map(id, self.stages), np.cumsum([0, *counts]).tolist(), strict=False))
        self.original: Numbers = np.full(sum(counts), -1)
        self.sends: dict[tuple[str, str, str], _End] = {}
        self.receives: dict[tuple[str, str, str], _End] = {}
        for stage in self.stages:
            for node in stage.graph.op_nodes():
                self._add(stage, node)

    def _add(self, stage: Stage, node: Node) -> None:
        number = self.first[id(stage)] + node.id
        original = self.whole.find_id(node.name)
        if original is not None:
            self.original[number] = original
        elif node.op_def.record.is_transfer:
            end = _End(stage, node, number, transfer_of(node.properties))
            ends = self.sends if node.is_send else self.receives
            if end.key in ends:
                found = f"{end.key} is at {node!r} and at {ends[end.key].node!r}"
                raise stage.broken("a key is sent once and received once", found, node.id)
            ends[end.key] = end

    def ends(self, stage: Stage) -> Sequence[_End]:
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
                found = f"{field} is {sent[field]!r} at {send.node!r} and {received[field]!r} at {recv.node!r}"
                raise recv.stage.broken("both ends of a transfer say the same", found, recv.node.id)

    def check_edges(self) -> None:
        """Read through transfers, the edges are those of the whole graph."""
        edges = self._edges()
        before = self.whole.edge_arrays()
        mine = (before.src > SINK_ID) & (before.dst > SINK_ID)
        rows = np.stack([c[mine] for c in (before.src, before.src_output, before.dst, before.dst_input)], axis=1)
        found, wanted = (_sorted(self._without_gates(some)) for some in (edges, rows.astype(np.int64)))
        if len(found) == len(wanted) and (found == wanted).all():
            return
        lost, new = (set(map(tuple, some.tolist())) for some in (wanted, found))
        stage = Stage("partitioned", self.whole)
        for verb, row in [("lost", row) for row in sorted(lost - new)] + [("made", row) for row in sorted(new - lost)]:
            src, output, dst, port = row
            text = f"the edge from {stage.text(src)!r}, port {output}, to {stage.text(dst)!r}, port {port} is {verb}"
            raise stage.broken("joined again, the parts have the edges of the graph", text, dst)
        raise stage.broken("joined again, the parts have the edges of the graph", "some are doubled")

    def _without_gates(self, rows: Numbers) -> Numbers:
        """The rows but for those that hold back a node until an iteration begins: cutting moves them to receives."""
        control = rows[:, 1] == CONTROL_SLOT
        gates = [i for i in np.unique(rows[control, 0]).tolist() if is_gate(self.whole, i)]
        kept: Mask = ~(control & np.isin(rows[:, 0], gates))
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


def _check_ends(stage: Stage, joined: _Joined, options: PartitionOptions) -> None:
    """A transfer names the device it is on, another one or the other memory of it, and the sender's incarnation."""
    for end in joined.ends(stage):
        route, node = end.transfer.route, end.node
        named = route.send_device if node.is_send else route.recv_device
        if named != node.assigned_device:
            found = f"{node!r} on {node.assigned_device!r} says {named!r}"
            raise stage.broken("a transfer says where it is", found, node.id)
        if route.incarnation != options.get_incarnation(route.send_device):
            found = f"{node!r} says {route.incarnation}"
            raise stage.broken("a transfer has the incarnation of its sender", found, node.id)
        port = node.input_types[0] if node.is_send else node.output_types[0]
        if base_type(port) != end.transfer.dtype:
            raise stage.broken("a transfer says its type", f"{node!r} says {end.transfer.dtype}, has {port}", node.id)


def _check_frames(stages: Mapping[str, Stage], joined: _Joined) -> None:
    """What is sent inside a loop is received inside it, so that every iteration has a receive of its own."""
    frames: dict[int, list[str]] = {}
    for stage in stages.values():
        try:
            frames[id(stage)] = build_control_flow_info(stage.graph).frame_name
        except PartitaError as error:
            raise stage.broken("the frames of a part are well formed", str(error)) from error
    for key, recv in joined.receives.items():
        send = joined.sends[key]
        inside, outside = frames[id(recv.stage)][recv.node.id], frames[id(send.stage)][send.node.id]
        if inside != outside:
            found = f"{recv.node!r} is in frame {inside!r}, {send.node!r} in {outside!r}"
            raise recv.stage.broken("a tensor is received in the frame it is sent in", found, recv.node.id)
