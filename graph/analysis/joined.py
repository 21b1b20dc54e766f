"""The partitions of a graph as one graph again: one numbering of all nodes, and every receive joined to its send.

Nodes are numbered in the order of the places and, within a place, of node ids; source and sink are left out. A single
unpartitioned graph may be given too. A step of a million nodes is planned and simulated in one process, so the graph is
columns, and facts that nodes of one kind share are stored by kind.

    cpu:0    x = Const, a = Neg(x), s = _Send(x)        names         x    a    s    r    y
    cpu:1    r = _Recv, y = Mul(r, r)                   place         0    0    0    1    1
                                                        sender       -1   -1   -1    2   -1
    The inputs of node n are those from                 input_start   0    0    1    2    2    4
    input_start[n] to input_start[n + 1].               input_src     0    0    3    3
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain, pairwise
from typing import TypeVar

import numpy as np

from ...errors import InvalidArgumentError
from ..arrays import (
    Flags,
    Groups,
    Integers,
    Numbers,
    first_seen,
    grouped,
    owners,
    ready_order,
    starts_of,
    topological_order,
)
from ..columns import CONTROL_SLOT, SINK_ID, Ids
from ..edge_ends import EdgeEnds, all_edges, by_consumer
from ..graph import Graph
from ..ops.properties import NodeProperties
from ..ops.record import RECVS, SENDS, NodeClass
from .joined_transfers import JoinedTransfers, TransferEnds
from .node_columns import NodeColumns
from .transfers import TransferTable

_LISTED = 3
_Key = TypeVar("_Key", bound=Hashable)


class JoinedGraph(NodeColumns):
    """Columns over all nodes of several graphs.

    By joint number: `names`; `kind_of`, an index into `kinds`, some of which may have no node; `place`, an index into
    `places`; `device_of`, an index into `devices`: the assigned device of the node, else the requested one, else its
    place.

    Data inputs, in the order of nodes and ports: output `input_output[i]` of node `input_src[i]` for every `i` from
    `input_start[n]` to `input_start[n + 1]`. Control inputs likewise: `control_src` and `control_start`.

    `transfers` has the routes of sends and receives; `sender[n]` is the send of receive `n`, -1 for other nodes and for
    receives from the client. By kind: `ops` and `classes`. By place: `functions`, the function library of the graph,
    and `producers`, its producer version. `fed_shapes` and `lowered` are as in `Graph`.
    """

    def __init__(self, graphs: Mapping[str, Graph], *, joins_transfers: bool = True) -> None:
        """Without `joins_transfers` receives stay apart from their sends, which may be elsewhere.

        Raises InvalidArgumentError for an unconnected input, and for a receive whose send is not in `graphs`.
        """
        parts = list(graphs.values())
        self.places = list(graphs)
        self.functions = [graph.functions for graph in parts]
        self.producers = [graph.versions.producer for graph in parts]
        given = [graph.fed_shapes for graph in parts if graph.fed_shapes is not None]
        self.fed_shapes = {name: shape for shapes in given for name, shape in shapes.items()} if given else None
        self.lowered = {name: lowered for graph in parts for name, lowered in graph.lowered.items()}
        ids = [nodes[nodes > SINK_ID] for nodes in (graph.live_nodes() for graph in parts)]
        counts = np.array([len(nodes) for nodes in ids], np.int64)
        self.names: list[str] = list(chain.from_iterable(map(_names, parts, ids)))
        self.place: Ids = owners(counts).astype(np.int32)
        self.kinds, self.kind_of = _numbered(map(_kinds, parts, ids))
        self.devices, self.device_of = _numbered(map(_devices, self.places, parts, ids))
        self.ops = [kind.op for kind in self.kinds]
        self.classes = [kind.op_def.record.node_class for kind in self.kinds]
        self._join_edges(_edges(parts, ids, (np.cumsum(counts) - counts).tolist()))
        self.transfers = JoinedTransfers(self._ends(parts, ids, (SENDS, RECVS) if joins_transfers else ((), ())))
        self.sender = self.transfers.sender

    def part(self, nodes: Ids) -> JoinedGraph:
        """The graph of some nodes, ascending, with the edges between them; they are numbered anew, in their order.

        A node may lack inputs there. With a receive its send must be among the nodes.
        """
        part = copy(self)
        for column in _CACHED.intersection(part.__dict__):
            del part.__dict__[column]
        part.names = [self.names[n] for n in nodes.tolist()]
        part.place, part.kind_of, part.device_of = self.place[nodes], self.kind_of[nodes], self.device_of[nodes]
        number = np.full(len(self), -1, np.int32)
        number[nodes] = np.arange(len(nodes))
        data_dst, control_dst = (number[owners(np.diff(start))] for start in (self.input_start, self.control_start))
        data, control = number[self.input_src], number[self.control_src]
        is_data, is_control = (data >= 0) & (data_dst >= 0), (control >= 0) & (control_dst >= 0)
        part.input_src, part.input_output = data[is_data], self.input_output[is_data]
        part.input_start = starts_of(data_dst[is_data], len(nodes))
        part.control_src, part.control_start = control[is_control], starts_of(control_dst[is_control], len(nodes))
        part.transfers = self.transfers.part(nodes)
        part.sender = part.transfers.sender
        return part

    def on(self, place: str, graph: Graph) -> JoinedGraph:
        """The columns of a graph with the same nodes and edges (`has_columns_of`), which is at `place` now."""
        placed = JoinedGraph.__new__(JoinedGraph)
        placed.__dict__.update(self.__dict__)  # `copy` does so after a long way round
        placed.places = [place]
        placed.functions, placed.producers = [graph.functions], [graph.versions.producer]
        placed.fed_shapes = None if graph.fed_shapes is None else dict(graph.fed_shapes)
        placed.lowered = dict(graph.lowered)
        placed.devices, placed.device_of = _numbered([_devices(place, graph, graph.live_nodes()[SINK_ID + 1 :])])
        return placed

    def _join_edges(self, edges: EdgeEnds) -> None:
        is_control = edges.src_output == CONTROL_SLOT
        data, control = edges.at(~is_control), edges.at(is_control)
        self.input_start, self.input_src = starts_of(data.dst, len(self)), data.src.astype(np.int32)
        self.input_output = data.src_output.astype(np.int32)
        self.control_start, self.control_src = starts_of(control.dst, len(self)), control.src.astype(np.int32)
        wanted = np.array([len(kind.input_types) for kind in self.kinds], np.int64)[self.kind_of]
        for n in np.flatnonzero(np.diff(self.input_start) != wanted).tolist():
            connected = len(self.inputs_of(n))
            problem = f"{connected} of {wanted[n]} inputs are connected; complete the graph first"
            raise InvalidArgumentError(problem, node=self.names[n], op=self.op(n))

    def _ends(
        self, parts: Sequence[Graph], ids: Sequence[Ids], joined: tuple[Collection[NodeClass], Collection[NodeClass]]
    ) -> TransferEnds:
        details = [graph.details() for graph in parts]
        rows = [rows[nodes] for (_, rows), nodes in zip(details, ids, strict=True)]
        return TransferEnds(
            tables=[table if isinstance(table, TransferTable) else None for table, _ in details],
            names=self.names,
            kinds=self.kinds,
            kind_of=self.kind_of,
            place=self.place,
            row=np.concatenate([np.zeros(0, np.int32), *rows]),
            is_send=self.of_class(*joined[0]),
            is_recv=self.of_class(*joined[1]),
        )

    def numbers(self, names: Collection[str]) -> dict[str, int]:
        """The joint numbers of these nodes, as far as they are there; of nodes with one name the last one."""
        return {name: n for n, name in enumerate(self.names) if name in names} if names else {}

    # One node

    def controls_of(self, n: int) -> list[int]:
        """The control inputs of a node."""
        controls: list[int] = self.control_src[self.control_start[n] : self.control_start[n + 1]].tolist()
        return controls

    # Whole columns

    @cached_property
    def properties(self) -> list[NodeProperties]:
        """By node `properties_of`."""
        return list(map(self.kinds.__getitem__, self.kind_of.tolist()))

    @cached_property
    def _can_close_loops(self) -> tuple[Flags, Flags]:
        return self.of_class(NodeClass.NEXT_ITERATION), self.of_class(NodeClass.MERGE)

    def closes_loop(self, src: Integers, dst: Integers) -> Flags:
        """Which edges close a loop: they go from a NextIteration to a Merge."""
        if NodeClass.NEXT_ITERATION not in self.classes:
            return np.zeros(len(src), np.bool_)
        is_next, is_merge = self._can_close_loops
        return is_next[src] & is_merge[dst]

    def is_back_edge(self, src: int, dst: int) -> bool:
        """Whether one edge closes a loop."""
        return bool(self._can_close_loops[0][src] and self._can_close_loops[1][dst])

    def consumers(self) -> Groups:
        """The consumers of every node, once per edge: data, control, send to receive; without edges that close a loop.

        Consumers of one node are in ascending order, those by data before those by control, receives last.
        """
        receives = np.flatnonzero(self.sender >= 0)
        data, control = owners(np.diff(self.input_start)), owners(np.diff(self.control_start))
        dst = np.concatenate([data, control])
        order = np.argsort(dst, kind="stable")
        dst = dst[order]
        src = np.concatenate([self.input_src, self.control_src])[order]
        closes = self.closes_loop(src, dst)
        if closes.any():
            src, dst = src[~closes], dst[~closes]
        src, dst = np.concatenate([src, self.sender[receives]]), np.concatenate([dst, receives])
        starts, edges = grouped(src, len(self))
        return Groups(starts, dst[edges])

    def wait_of(self, receive: int, prefix: str = "") -> str:
        """Says what a receive waits for; `prefix` begins its name."""
        return f"{prefix + self.names[receive]!r} waits for {self.transfers.of(receive).key}"

    def order(self) -> Ids:
        """A topological order (first ready, first out; lowest numbers first at the start); not to be changed.

        Raises InvalidArgumentError for a cycle that has no NextIteration, naming nodes of it, or else the receives
        that wait.
        """
        return self._order

    @cached_property
    def _order(self) -> Ids:
        order = np.array(topological_order(*self.consumers()), np.int32)
        if len(order) < len(self):
            self._refuse_cycle(order)
        return order

    @cached_property
    def import_ranks(self) -> list[int]:
        """By node its number in the order in which TensorFlow makes the nodes of a partition, and so their edges: of
        those whose inputs are made the first one.
        """
        starts, members = self.consumers()
        consumers = [members[first:end].tolist() for first, end in pairwise(starts.tolist())]
        waits: list[int] = np.bincount(members, minlength=len(self)).tolist()
        ranks = [0] * len(self)
        for rank, n in enumerate(ready_order(consumers, waits, lowest_first=True)):
            ranks[n] = rank
        return ranks

    def _refuse_cycle(self, order: Ids) -> None:
        is_stuck = np.ones(len(self), np.bool_)
        is_stuck[order] = False
        stuck = np.flatnonzero(is_stuck)
        waiting = listed_waits(self.wait_of(n) for n in stuck[self.sender[stuck] >= 0].tolist())
        raise InvalidArgumentError(
            "the node waits for itself: its inputs form a cycle without a next iteration; break the cycle" + waiting,
            node=self.names[stuck[0]],
            op=self.op(stuck[0]),
        )


_CACHED = frozenset(name for name, kind in vars(JoinedGraph).items() if isinstance(kind, cached_property))


def listed_waits(waits: Iterable[str]) -> str:
    """The first receives that wait, each after a semicolon, and how many more there are."""
    texts = list(waits)
    more = [f"{len(texts) - _LISTED} more receives wait"] if len(texts) > _LISTED else []
    return "".join(f"; {text}" for text in texts[:_LISTED] + more)


def _numbered(columns: Iterable[tuple[Iterable[_Key], Integers]]) -> tuple[list[_Key], Ids]:
    """Numbers the keys of all graphs together; a graph has its distinct keys, and by node the index of its own."""
    numbers: dict[_Key, int] = {}
    joined = [np.zeros(0, np.int32)]
    for keys, of in columns:
        numbered = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int32)
        joined.append(numbered[of])
    return list(numbers), np.concatenate(joined)


def _names(graph: Graph, nodes: Ids) -> list[str]:
    names = graph.names()
    if len(nodes) + SINK_ID + 1 < len(names):
        names = [names[i] for i in nodes.tolist()]
    else:
        names = names[SINK_ID + 1 :]
    return [name for name in names if name is not None]  # live nodes have names: only for the type checker


def _kinds(graph: Graph, nodes: Ids) -> tuple[list[NodeProperties], Numbers]:
    kinds, kind_of = graph.distinct_properties()
    return kinds, kind_of[nodes]


def _devices(place: str, graph: Graph, nodes: Ids) -> tuple[list[str], Numbers]:
    assigned, requested = graph.assigned_device_indices()[nodes], graph.requested_device_indices()[nodes]
    device, names = np.where(assigned > 0, assigned, requested), graph.device_names()  # number 0 is the empty name
    if len(device) and (device == device[0]).all():  # so it is in each of a thousand partitions
        return [names[device[0]] or place], np.zeros(len(device), np.int64)
    seen = first_seen(device)
    return [names[number] or place for number in device[seen.first].tolist()], seen.number


def _edges(parts: Sequence[Graph], ids: Sequence[Ids], first: Sequence[int]) -> EdgeEnds:
    """The edges between nodes, by joint numbers, in the order of consumers and their inputs."""
    nothing = np.zeros(0, np.int32)
    columns = [EdgeEnds(nothing, nothing, nothing, nothing)]
    for graph, nodes, begin in zip(parts, ids, first, strict=True):
        joint = np.full(graph.num_node_ids, -1, np.int32)
        joint[nodes] = np.arange(begin, begin + len(nodes))
        edges = graph.edge_arrays()
        ends = EdgeEnds(joint[edges.src], edges.src_output, joint[edges.dst], edges.dst_input)
        columns.append(ends.at((ends.src >= 0) & (ends.dst >= 0)))  # without the edges of source and sink
    joined = all_edges(columns)
    return joined.at(by_consumer(joined.dst, joined.dst_input))
