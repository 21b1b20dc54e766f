"""Pairs of a send and a receive, in columns: the nodes that are generated for each, and the edges between them.

The nodes of a pair, in the order in which their names are drawn:

    control edge            empty constant -> send ~ recv -> identity
    tensor                                    send ~ recv
    tensor sent as another type       cast -> send ~ recv -> cast back

A pair is a row of `PairNodes`, and its nodes have consecutive numbers. Two pairs whose first number is 10, one for a
tensor and one for a control edge:

    >>> nodes = number_nodes(control=np.array([False, True]), casts=np.array([False, False]), begin=10)
    >>> for name, numbers in nodes._asdict().items():
    ...     print(f"{name:8}{numbers}")
    const   [10 12]
    cast    [10 13]
    send    [10 13]
    recv    [11 14]
    arrival [11 15]
    counts  [2 4]

A node that a pair does not have has the number of the next node: here `cast` is always that of the send. `arrival` is
the node that consumers read: cast back, identity, or else the recv itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, NewType, cast

import numpy as np

from ..analysis.transfers import TransferRoute, TransferTable, transfer_kind
from ..arrays import Flags, Numbers, owners, positions
from ..columns import CONTROL_SLOT, Ids
from ..dtypes import DataType, is_ref
from ..edge_ends import EdgeEnds, all_edges
from ..graph import Graph
from ..ops.properties import NodeProperties, properties_of
from .cut_edges import CutEdges, CutPositions, PairNumbers

NodeNumbers = NewType("NodeNumbers", Numbers)
"""ids of the graph that is cut, followed by the numbers of generated nodes"""
_NUM_TYPES = 1 + max(dtype for dtype in DataType if not is_ref(dtype))


class PairNodes(NamedTuple):
    """The number of each node of each pair, and `counts`, how many nodes it has, as in the example above."""

    const: NodeNumbers
    cast: NodeNumbers
    send: NodeNumbers
    recv: NodeNumbers
    arrival: NodeNumbers
    counts: Numbers


def number_nodes(control: Flags, casts: Flags, begin: int) -> PairNodes:
    """Numbers the nodes of pairs from `begin` on. By pair: `control`, for a control edge; `casts`, of another type."""
    # The loop goes through the pairs with a running number: each takes the next one for every node that it has, and
    # where it does not have a node the number is read without being advanced.
    has_end = casts | control
    counts = control.astype(np.int64) + casts + 2 + has_end
    const = begin + np.cumsum(counts) - counts
    cast_in = const + control
    send = cast_in + casts
    recv = send + 1
    arrival = recv + has_end
    const, cast_in, send, recv, arrival = map(NodeNumbers, (const, cast_in, send, recv, arrival))
    return PairNodes(const, cast_in, send, recv, arrival, counts)


@cache
def empty_constant() -> NodeProperties:
    """The constant whose value is sent for a control edge between partitions."""
    return properties_of("Const", {"dtype": DataType.FLOAT, "value": np.zeros(0, np.float32)})


@cache
def _identity(dtype: int) -> NodeProperties:
    return properties_of("Identity", {"T": dtype})


@cache
def _cast(source: int, target: int, on_host: bool) -> NodeProperties:
    attrs = {"SrcT": source, "DstT": target, "Truncate": target == DataType.BFLOAT16}
    return properties_of("_HostCast" if on_host else "Cast", attrs)


def _send(dtype: int, on_host: bool) -> NodeProperties:
    return transfer_kind("_HostSend" if on_host else "_Send", DataType(dtype))


def _recv(dtype: int, on_host: bool) -> NodeProperties:
    return transfer_kind("_HostRecv" if on_host else "_Recv", DataType(dtype))


class TransferPairs:
    """One row per pair: its first edge, the element type that is sent, and its nodes."""

    def __init__(self, edges: CutEdges, first: CutPositions, sent: Numbers, begin: int) -> None:
        """`sent` has the element type by pair, `begin` is the number of the first generated node."""
        self.edges = edges
        self.first = first
        self._sent = sent
        self._ends = EdgeEnds(edges.edges.src, edges.edges.src_output, edges.edges.dst, edges.edges.dst_input).at(first)
        self._control = self._ends.src_output == CONTROL_SLOT
        self._casts = sent != edges.dtype[first]
        self._begin = begin
        self.nodes = number_nodes(self._control, self._casts, begin)
        self._behind = self.nodes.arrival > self.nodes.recv
        self._pair_of_node = owners(self.nodes.counts)

    def sides(self) -> tuple[Ids, Ids]:
        """By generated node: the end of the edge that is in its partition, and the consumer it is generated for."""
        pair = self._pair_of_node
        number = self._begin + np.arange(len(pair))
        src, dst = self.edges.edges.src[self.first][pair], self.edges.edges.dst[self.first][pair]
        return np.where(number <= self.nodes.send[pair], src, dst).astype(np.int32), dst

    def sources(self) -> Ids:
        """By generated node: the producer at the beginning of its edge."""
        return self._ends.src[self._pair_of_node].astype(np.int32)

    def joining_edges(self, pair_of: PairNumbers) -> EdgeEnds:
        """The edges within pairs, and from each pair to its consumers."""
        nodes, cut = self.nodes, self.edges.edges
        src, output, _, _ = self._ends
        zeros, control = np.zeros(len(src), np.int64), np.full(len(src), CONTROL_SLOT)
        # `source` is the tensor to send: the output of the edge, or the constant of a control edge. `sent` is what the
        # send reads: the cast of `source`, or `source` itself.
        source, source_port = np.where(self._control, nodes.const, src), np.where(self._control, 0, output)
        sent, sent_port = np.where(self._casts, nodes.cast, source), np.where(self._casts, 0, source_port)
        consumer_port = np.where(cut.src_output == CONTROL_SLOT, CONTROL_SLOT, 0)
        return all_edges(
            [
                EdgeEnds(src, control, nodes.const, control).at(self._control),
                EdgeEnds(source, source_port, nodes.cast, zeros).at(self._casts),
                EdgeEnds(sent, sent_port, nodes.send, zeros),
                EdgeEnds(nodes.send, control, nodes.recv, control).at(self.edges.local[self.first]),
                EdgeEnds(nodes.recv, zeros, nodes.arrival, zeros).at(self._behind),
                EdgeEnds(nodes.arrival[pair_of], consumer_port, cut.dst, cut.dst_input),
            ]
        )

    def names(self, graph: Graph, new_name: Callable[[str], str]) -> list[str]:
        """Names of all generated nodes, by number; each begins with the name of the producer."""
        sources = self._ends.src[self._pair_of_node].tolist()
        prefixes = cast("list[str]", list(map(graph.names().__getitem__, sources)))  # None only for removed nodes
        for number in (self.nodes.const[self._control] - self._begin).tolist():
            prefixes[number] += "/ctrl"
        return list(map(new_name, prefixes))

    def kinds(self) -> tuple[list[NodeProperties], Numbers]:
        """The distinct properties of generated nodes, and by number the index of each node's."""
        edges, sent, nodes = self.edges, self._sent, self.nodes
        from_host, to_host, read = edges.from_host[self.first], edges.to_host[self.first], edges.dtype[self.first]
        control, casts = self._control, self._casts
        kinds = _Kinds(len(self._pair_of_node), self._begin)
        kinds.put(nodes.const, control, empty_constant)
        kinds.put(nodes.cast, casts, _cast, read, sent, from_host)
        kinds.put(nodes.send, None, _send, sent, from_host)
        kinds.put(nodes.recv, None, _recv, sent, to_host)
        kinds.put(nodes.arrival, self._behind & casts, _cast, sent, read, to_host)
        kinds.put(nodes.arrival, self._behind & ~casts, _identity, read)
        return kinds.kinds, kinds.kind_of

    def rows(self) -> Ids:
        """By generated node: the row of its transfer, -1 for nodes other than send and recv."""
        rows = np.full(len(self._pair_of_node), -1, np.int32)
        rows[self.nodes.send - self._begin] = rows[self.nodes.recv - self._begin] = np.arange(len(self.first))
        return rows

    def transfers(self, graph: Graph, incarnations: Sequence[int]) -> TransferTable:
        """The table of transfers, one row per pair; `incarnations` by index of the device."""
        src, _, dst, _ = self._ends
        names, devices, device_names = graph.names(), graph.assigned_device_indices(), graph.device_names()
        # One route for all transfers between two devices, since the beginning of a rendezvous key is made per route.
        both = devices[src].astype(np.int64) * len(device_names) + devices[dst]
        distinct, route_of = np.unique(both, return_inverse=True)
        routes = (divmod(code, len(device_names)) for code in distinct.tolist())
        return TransferTable(
            edge=self.edges.edges.id[self.first].tolist(),
            src=cast("list[str]", list(map(names.__getitem__, src.tolist()))),
            dst=cast("list[str]", list(map(names.__getitem__, dst.tolist()))),
            route=route_of.reshape(-1).tolist(),
            routes=[TransferRoute(device_names[send], incarnations[send], device_names[recv]) for send, recv in routes],
            dtype=self._sent.tolist(),
        )


class _Kinds:
    """Properties of generated nodes, filled in for one column of `PairNodes` after another."""

    def __init__(self, count: int, begin: int) -> None:
        self._begin = begin
        self.kinds: list[NodeProperties] = []
        self.kind_of = np.zeros(count, np.int64)

    def put(
        self, numbers: NodeNumbers, chosen: Flags | None, make: Callable[..., NodeProperties], *facts: Numbers | Flags
    ) -> None:
        """Gives each chosen node of `numbers` (None: all) the properties `make(*its facts)`."""
        # for n, *row in zip(numbers, *facts): kind_of[n] = make(*row). There are few distinct rows (element types,
        # memories), so each row is packed into one integer and `make` is called once per distinct one.
        code = np.zeros(len(numbers), np.int64)
        for fact in facts:
            code = code * _NUM_TYPES + fact
        at = np.arange(len(numbers)) if chosen is None else positions(chosen)
        if len(at):
            _, first, kind = np.unique(code[at], return_index=True, return_inverse=True)
            self.kind_of[numbers[at] - self._begin] = kind.reshape(-1) + len(self.kinds)
            self.kinds += [make(*(fact[i].item() for fact in facts)) for i in at[first].tolist()]
