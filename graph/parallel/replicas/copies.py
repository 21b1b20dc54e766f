"""Copies the program of replica 0 for the others, as columns.

    replica 0: x -> MatMul -> ... -> CollectiveReduce -> update        ids of the program: 3 7 8 9 ...
    replica r: the same nodes, named "replica_r/...", ids from first + r * count on

An edge into the program from outside (a fed learning rate) goes to every copy. What runs outside after some nodes of
the program, such as the node that a caller names to run all updates, waits for those of all replicas: each has a NoOp
that collects them. An assignment from outside, such as a restored checkpoint, gets a copy per replica that assigns the
same value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...arrays import Flags, Numbers
from ...columns import CONTROL_SLOT, SINK_ID
from ...edge_ends import EdgeEnds, all_edges
from ...graph import Graph
from ...ops.properties import NodeProperties, no_op_properties

ByRank = Mapping[int, Callable[[int], NodeProperties]]


@dataclass(slots=True)
class Program:
    """What replica 0 runs: its nodes by id in a graph, and how the copies differ."""

    graph: Graph
    """without removed nodes"""
    edges: EdgeEnds
    nodes: Numbers
    """ids, ascending"""
    prefixes: Sequence[str]
    """what is put before the names of the nodes of each rank from 1 on; that of rank 0 is not used"""
    device_maps: Sequence[Mapping[str, str]]
    fixed: Mapping[int, str] = field(default_factory=dict)
    """nodes that keep a device of their own, in all replicas"""
    splits: frozenset[int] = frozenset()
    """nodes outside whose output k is for replica k"""
    by_rank: ByRank = field(default_factory=dict)
    assigns: Mapping[int, int] = field(default_factory=dict)
    """nodes outside that assign variables of the program, with the node that makes the variable"""
    waits: frozenset[int] = frozenset()
    """nodes of the program that must run in all replicas if they run in one"""


def replicated(p: Program, renamed: Mapping[int, str]) -> Graph:
    """The graph with all replicas; some nodes of replica 0 get other names."""
    return _Assembly(p, renamed).run()


def id_of_copy(p: Program, node: int, rank: int) -> int:
    """The id of a node of the program in the replica of a rank; a node outside has one id."""
    at = int(np.searchsorted(p.nodes, node))
    if rank == 0 or at == len(p.nodes) or p.nodes[at] != node:
        return node
    return p.graph.num_node_ids + (rank - 1) * len(p.nodes) + at


class _Assembly:
    """The columns of the new graph."""

    def __init__(self, program: Program, renamed: Mapping[int, str]) -> None:
        self.p = program
        self.renamed = renamed
        self.old = program.graph
        self.count = len(program.nodes)
        self.size = len(program.device_maps)
        self.inside: Flags = np.zeros(self.old.num_node_ids, np.bool_)
        self.inside[program.nodes] = True
        self.local = np.full(self.old.num_node_ids, -1, np.int64)
        self.local[program.nodes] = np.arange(self.count)
        self.first = self.old.num_node_ids
        self.new = Graph()
        self.new.functions, self.new.versions = self.old.functions, self.old.versions
        self.new.lowered = dict(self.old.lowered)
        self.added: list[EdgeEnds] = []

    def run(self) -> Graph:
        """Adds base, copies, and what joins them."""
        self._base()
        for rank in range(1, self.size):
            self._copy_nodes(rank)
        self.added.append(self.p.edges)
        self._copy_edges()
        extra = _Extra(self)
        extra.assign_all()
        extra.wait_for_all()
        extra.flush()
        self.new.extend_edges(*all_edges(self.added))
        self.new.fix_source_and_sink_edges()
        return self.new

    def id_of(self, node: int, rank: int) -> int:
        """The id of a node of the program in the replica of a rank."""
        return node if rank == 0 else self.first + (rank - 1) * self.count + int(self.local[node])

    def _base(self) -> None:
        """All nodes of the graph, with the devices of replica 0."""
        names, kinds = list(self.old.names()), self.old.all_properties()[SINK_ID + 1 :]
        for node, name in self.renamed.items():
            names[node] = name
        devices = self._devices(np.arange(SINK_ID + 1, self.first), 0)
        self.new.extend_nodes(names[SINK_ID + 1 :], kinds, devices.tolist())  # type: ignore[arg-type]  # all nodes are live

    def _devices(self, nodes: Numbers, rank: int) -> Numbers:
        """The new device indices of some nodes of the graph in a replica."""
        of_rank = self.p.device_maps[rank]
        requested = self.old.requested_device_indices()[nodes]
        new = np.array([self.new.intern_device(of_rank.get(name, name)) for name in self.old.device_names()], np.int64)[
            requested
        ]
        free = self.new.intern_device("")
        new[(requested == 0) & ~self.inside[nodes]] = free
        for node, device in self.p.fixed.items():
            new[nodes == node] = self.new.intern_device(device)
        return new

    def _copy_nodes(self, rank: int) -> None:
        prefix = self.p.prefixes[rank]
        old_names, old_kinds = self.old.names(), self.old.all_properties()
        ids = self.p.nodes.tolist()
        kinds = [old_kinds[i] for i in ids]
        for node, properties in self.p.by_rank.items():
            kinds[int(self.local[node])] = properties(rank)
        names = [f"{prefix}{old_names[i]}" for i in ids]
        self.new.extend_nodes(names, kinds, self._devices(self.p.nodes, rank).tolist())  # type: ignore[arg-type]  # live

    def _copy_edges(self) -> None:
        """The edges into the program, for all ranks at once."""
        edges = self.p.edges.at(self.inside[self.p.edges.dst])
        ranks = np.arange(1, self.size)[:, None]
        offset = self.first + (ranks - 1) * self.count
        from_inside = self.inside[edges.src]
        src = np.where(from_inside, self.local[edges.src] + offset, edges.src)
        port = np.broadcast_to(edges.src_output, src.shape) + ranks * np.isin(edges.src, list(self.p.splits))
        dst = self.local[edges.dst] + offset
        slot = np.broadcast_to(edges.dst_input, src.shape)
        self.added.append(EdgeEnds(src.ravel(), port.ravel(), dst.ravel(), slot.ravel()))


class _Extra:
    """Nodes beside the copies: collected control edges, and assignments from outside."""

    def __init__(self, assembly: _Assembly) -> None:
        self.a = assembly
        self.names: list[str] = []
        self.kinds: list[NodeProperties] = []
        self.devices: list[int] = []
        self.edges: list[tuple[int, int, int, int]] = []
        self.next_id = assembly.new.num_node_ids
        self.copied_assigns: dict[int, list[int]] = {}  # ids of the copies of an assignment, by rank from 1 on

    def _add(self, name: str, kind: NodeProperties, device: int) -> int:
        self.names.append(name)
        self.kinds.append(kind)
        self.devices.append(device)
        self.next_id += 1
        return self.next_id - 1

    def flush(self) -> None:
        """Adds the nodes, and the edges to those of the assembly."""
        a = self.a
        a.new.extend_nodes(self.names, self.kinds, self.devices)
        if self.edges:
            columns = np.array(self.edges, np.int64).T
            a.added.append(EdgeEnds(*columns))

    def assign_all(self) -> None:
        """Copies of the assignments from outside: they read the same values and change the copies of the variable."""
        a = self.a
        old_names, kinds = a.old.names(), a.old.all_properties()
        for node, variable in a.p.assigns.items():
            incoming = a.p.edges.at(a.p.edges.dst == node)
            self.copied_assigns[node] = []
            for rank in range(1, a.size):
                handle = a.id_of(variable, rank)
                at = a.new.intern_device(a.new.requested_device(handle))
                kind = kinds[node]
                assert kind is not None
                copy = self._add(f"{a.p.prefixes[rank]}{old_names[node]}", kind, at)
                self.copied_assigns[node].append(copy)
                for src, port, _, slot in zip(*(column.tolist() for column in incoming), strict=True):
                    if slot == 0:
                        src, port = variable, 0
                    self.edges.append((a.id_of(src, rank) if a.inside[src] else src, port, copy, slot))

    def wait_for_all(self) -> None:
        """What runs after nodes of the program, or after assignments, waits for those of all replicas."""
        a = self.a
        edges = a.p.edges
        must = np.zeros(a.old.num_node_ids, np.bool_)
        must[list(a.p.waits)] = True
        must[list(a.p.assigns)] = True
        outgoing = edges.at(must[edges.src] & ~a.inside[edges.dst] & (edges.dst_input == CONTROL_SLOT))
        collected: dict[int, list[int]] = {}
        for src, dst in zip(outgoing.src.tolist(), outgoing.dst.tolist(), strict=True):
            collected.setdefault(dst, []).append(src)
        has_reader = set(outgoing.src.tolist()) | set(edges.src[a.inside[edges.dst]].tolist())
        for consumer, waited in collected.items():
            self._collect(consumer, waited)
        for node in [*a.p.waits, *a.p.assigns]:
            if node not in has_reader:
                for rank in range(1, a.size):
                    self.edges.append((self._copy_of(node, rank), CONTROL_SLOT, node, CONTROL_SLOT))

    def _copy_of(self, node: int, rank: int) -> int:
        return self.copied_assigns[node][rank - 1] if node in self.copied_assigns else self.a.id_of(node, rank)

    def _collect(self, consumer: int, waited: list[int]) -> None:
        """One NoOp per replica before a node outside."""
        a = self.a
        name = a.old.names()[consumer]
        for rank in range(1, a.size):
            copies = [self._copy_of(node, rank) for node in waited]
            if len(copies) == 1:
                done = copies[0]
            else:
                device = a.new.intern_device(a.p.device_maps[rank][""])
                done = self._add(f"{a.p.prefixes[rank]}{name}", no_op_properties(), device)
                self.edges += [(copy, CONTROL_SLOT, done, CONTROL_SLOT) for copy in copies]
            self.edges.append((done, CONTROL_SLOT, consumer, CONTROL_SLOT))
