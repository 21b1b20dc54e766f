"""The transfers a cut needs, in columns: which nodes each is made of, and how they are joined.

Flows in: all cut edges in the order consumers ask for them. Flows out: generated nodes and the edges that join them.
The nodes of a pair are, in the order their names are drawn: for a control edge an empty constant, for a changed element
type a cast, send, recv, and behind the recv a cast back or, for a control edge, an identity.

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

A node that a pair does not have gets the number of the next that it has (there is no cast above), and `arrival`, what
consumers read, is the recv itself where nothing stands behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, NewType, cast

import numpy as np

from ..analysis.transfers import Route, TransferTable, transfer_kind
from ..arrays import Flags, Numbers, owners
from ..columns import CONTROL_SLOT, Ids
from ..dtypes import DataType, is_ref
from ..edge_ends import EdgeEnds, all_edges
from ..graph import Graph
from ..ops.properties import NodeProperties, properties_of
from .cut_edges import CutEdges, CutPositions, PairNumbers

NodeNumbers = NewType("NodeNumbers", Numbers)
"""ids of the graph that is cut and, past them, numbers of generated nodes"""
_NUM_TYPES = 1 + max(dtype for dtype in DataType if not is_ref(dtype))


class PairNodes(NamedTuple):
    """The nodes of each pair, and `counts`, how many it has; see the example above."""

    const: NodeNumbers
    cast: NodeNumbers
    send: NodeNumbers
    recv: NodeNumbers
    arrival: NodeNumbers
    counts: Numbers


def number_nodes(control: Flags, casts: Flags, begin: int) -> PairNodes:
    """Numbers the nodes of pairs from `begin` on; `control`: of control edges, `casts`: those that change type."""
    # The loop: every pair begins where the one before it ends, and a node that it has pushes the next ones on by one.
    has_end = casts | control
    counts = control.astype(np.int64) + casts + 2 + has_end
    const = begin + np.cumsum(counts) - counts
    cast_in = const + control
    send = cast_in + casts
    recv = send + 1
    arrival = recv + has_end
    numbers = NodeNumbers  # what the columns hold
    return PairNodes(numbers(const), numbers(cast_in), numbers(send), numbers(recv), numbers(arrival), counts)


@cache
def empty_constant() -> NodeProperties:
    """The tensor that stands for a control edge between parts."""
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


class Pairs:
    """One row a pair: its first edge, the element type it is sent as, and its nodes."""

    def __init__(self, edges: CutEdges, first: CutPositions, sent: Numbers, begin: int) -> None:
        """`sent` is the element type per pair, `begin` the number of the first generated node."""
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
        """Per generated node: the original node it stands beside, and the consumer that made it necessary."""
        pair = self._pair_of_node
        number = self._begin + np.arange(len(pair))
        src, dst = self.edges.edges.src[self.first][pair], self.edges.edges.dst[self.first][pair]
        return np.where(number <= self.nodes.send[pair], src, dst).astype(np.int32), dst

    def joining_edges(self, pair_of: PairNumbers) -> EdgeEnds:
        """The edges within pairs, and from each pair to its consumers."""
        nodes, cut = self.nodes, self.edges.edges
        src, output, _, _ = self._ends
        zeros, control = np.zeros(len(src), np.int64), np.full(len(src), CONTROL_SLOT)
        # What a cast or else the send reads: the constant that stands for a control edge, or the output that is sent;
        # and what the send reads: the cast, if there is one.
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
        """Names of all generated nodes, by number: each has that of the source in front."""
        sources = self._ends.src[self._pair_of_node].tolist()
        prefixes = cast("list[str]", list(map(graph.names().__getitem__, sources)))  # live, or they had no edges
        for number in (self.nodes.const[self._control] - self._begin).tolist():
            prefixes[number] += "/ctrl"
        return list(map(new_name, prefixes))

    def kinds(self) -> tuple[list[NodeProperties], Numbers]:
        """The kinds of generated nodes, and by number which of them each has."""
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
        """By number of a generated node: the row of its transfer, -1 for nodes that transfer nothing."""
        rows = np.full(len(self._pair_of_node), -1, np.int32)
        rows[self.nodes.send - self._begin] = rows[self.nodes.recv - self._begin] = np.arange(len(self.first))
        return rows

    def transfers(self, graph: Graph, incarnations: Sequence[int]) -> TransferTable:
        """The table of transfers, one row a pair; `incarnations` by interned device."""
        src, _, dst, _ = self._ends
        names, devices, device_names = graph.names(), graph.assigned_device_indices(), graph.device_names()
        # One route per pair of devices, not per transfer: the texts that all its keys begin with are made once.
        both = devices[src].astype(np.int64) * len(device_names) + devices[dst]
        ends, route_of = np.unique(both, return_inverse=True)
        routes = (divmod(end, len(device_names)) for end in ends.tolist())
        return TransferTable(
            edge=self.edges.edges.id[self.first].tolist(),
            src=cast("list[str]", list(map(names.__getitem__, src.tolist()))),
            dst=cast("list[str]", list(map(names.__getitem__, dst.tolist()))),
            route=route_of.reshape(-1).tolist(),
            routes=[Route(device_names[send], incarnations[send], device_names[recv]) for send, recv in routes],
            dtype=self._sent.tolist(),
        )


class _Kinds:
    """Kinds of generated nodes, filled in column by column."""

    def __init__(self, count: int, begin: int) -> None:
        self._begin = begin
        self.kinds: list[NodeProperties] = []
        self.kind_of = np.zeros(count, np.int64)

    def put(
        self, numbers: NodeNumbers, chosen: Flags | None, make: Callable[..., NodeProperties], *facts: Numbers | Flags
    ) -> None:
        """Gives the chosen ones of nodes `numbers` (None: all) the properties that `make` makes of their facts."""
        # for n, *row in zip(numbers, *facts): kind_of[n] = make(*row), but made once for equal rows, which are a few
        # element types and two memories: a row is packed into one integer, and the distinct ones are made.
        code = np.zeros(len(numbers), np.int64)
        for fact in facts:
            code = code * _NUM_TYPES + fact
        at = np.arange(len(numbers)) if chosen is None else np.flatnonzero(chosen)
        if len(at):
            _, first, kind = np.unique(code[at], return_index=True, return_inverse=True)
            self.kind_of[numbers[at] - self._begin] = kind.reshape(-1) + len(self.kinds)
            self.kinds += [make(*(fact[i].item() for fact in facts)) for i in at[first].tolist()]
