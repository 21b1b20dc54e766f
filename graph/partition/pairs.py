"""The transfers a cut needs, in columns: which cut edges share one, and which nodes each is made of.

Flows in: all cut edges in the order consumers ask for them. Flows out: generated nodes and the edges that join them.
Always holds: edges share a pair when they carry the same output to the same location into the same memory; reference
edges never share. The nodes of a pair are, in the order their names are drawn: for a control edge an empty constant,
for a changed element type a cast, send, recv, and behind the recv a cast back or, for a control edge, an identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

import numpy as np
import numpy.typing as npt

from ..analysis.transfers import Route, TransferTable, transfer_kind
from ..columns import CONTROL_SLOT, Ids
from ..dtypes import DataType, is_ref
from ..graph import Graph
from ..ops.properties import NodeProperties, properties_of

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
_NUM_TYPES = 1 + max(dtype for dtype in DataType if not is_ref(dtype))


@dataclass(slots=True)
class CutEdges:
    """Cut edges by consumer: data inputs by port, then control inputs. All columns are equally long.

    `from_host`, `to_host`: the memory at both ends; `shared_host`: the memory as far as sharing goes; `is_ref`:
    whether the source port is a reference; `local`: both ends in one location; `dtype`: element type that the
    consumer reads.
    """

    id: Ids
    src: Ids
    output: Ids
    dst: Ids
    port: Ids
    location: Ids
    from_host: Flags
    to_host: Flags
    shared_host: Flags
    is_ref: Flags
    local: Flags
    dtype: Numbers

    def groups(self) -> tuple[Numbers, Numbers]:
        """Position of the first edge of every pair, ascending, and the pair of each edge."""
        ports = np.int64(self.output.max(initial=0) + 2)
        locations = np.int64(self.location.max(initial=0) + 1)
        key = (self.src.astype(np.int64) * ports + self.output + 1) * locations + self.location
        key = key * 2 + self.shared_host
        key[self.is_ref] = -1 - np.flatnonzero(self.is_ref)
        _, first, pair = np.unique(key, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return np.sort(first), rank[pair.reshape(-1)]


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
    """One row a pair: its first edge, the element type it is sent as, and the numbers of its nodes."""

    def __init__(self, edges: CutEdges, first: Numbers, sent: Numbers, first_number: int) -> None:
        """`sent` is the element type per pair, `first_number` the number of the first generated node."""
        self.edges = edges
        self.first = first
        self.sent = sent
        self.control = edges.output[first] == CONTROL_SLOT
        self.casts = sent != edges.dtype[first]
        counts = self.control.astype(np.int64) + self.casts + 2 + (self.casts | self.control)
        start = first_number + np.cumsum(counts) - counts
        self.const = start
        self.cast = start + self.control
        self.send = self.cast + self.casts
        self.recv = self.send + 1
        self.arrival = self.recv + (self.casts | self.control)
        self.counts = counts
        self.begin = first_number
        self.end = first_number + int(counts.sum())

    def sides(self) -> tuple[Ids, Ids]:
        """Per generated node: the original node it stands beside, and the consumer that made it necessary."""
        total = int(self.counts.sum())
        pair = np.repeat(np.arange(len(self.counts)), self.counts)
        number = np.arange(total) + (self.end - total)
        src, dst = self.edges.src[self.first][pair], self.edges.dst[self.first][pair]
        return np.where(number <= self.send[pair], src, dst).astype(np.int32), dst

    def joining_edges(self, pair_of: Numbers) -> npt.NDArray[np.int32]:
        """Rows (src, src_output, dst, dst_input) within pairs, and from each pair to its consumers."""
        edges, c, k = self.edges, self.control, self.casts
        src, output = edges.src[self.first], edges.output[self.first]
        source, source_port = np.where(c, self.const, src), np.where(c, 0, output)
        read, read_port = np.where(k, self.cast, source), np.where(k, 0, source_port)
        local, behind = edges.local[self.first], self.arrival > self.recv
        zeros, order = np.zeros(len(c), np.int64), np.full(len(c), CONTROL_SLOT)
        consumer_port = np.where(edges.output == CONTROL_SLOT, CONTROL_SLOT, 0)
        return np.concatenate(
            [
                _rows(c, src, order, self.const, order),
                _rows(k, source, source_port, self.cast, zeros),
                _rows(np.ones(len(c), np.bool_), read, read_port, self.send, zeros),
                _rows(local, self.send, order, self.recv, order),
                _rows(behind, self.recv, zeros, self.arrival, zeros),
                np.stack([self.arrival[pair_of], consumer_port, edges.dst, edges.port], axis=1),
            ]
        ).astype(np.int32)

    def names(self, graph: Graph, new_name: Callable[[str], str]) -> list[str]:
        """Names of all generated nodes, by number: each has that of the source in front."""
        sources = np.repeat(self.edges.src[self.first], self.counts).tolist()
        prefixes = cast("list[str]", list(map(graph.names().__getitem__, sources)))  # live, or they had no edges
        for number in (self.const[self.control] - self.begin).tolist():
            prefixes[number] += "/ctrl"
        return list(map(new_name, prefixes))

    def kinds(self) -> tuple[list[NodeProperties], Numbers]:
        """The kinds of generated nodes, and by number which of them each has."""
        edges, at = self.edges, self.first
        from_host, to_host, read = edges.from_host[at], edges.to_host[at], edges.dtype[at]
        behind = self.arrival > self.recv
        kinds = _Kinds(self.end - self.begin)
        begin = self.begin
        kinds.put(self.const[self.control] - begin, empty_constant)
        kinds.put(self.cast[self.casts] - begin, _cast, *(c[self.casts] for c in (read, self.sent, from_host)))
        kinds.put(self.send - begin, _send, self.sent, from_host)
        kinds.put(self.recv - begin, _recv, self.sent, to_host)
        back, same = behind & self.casts, behind & ~self.casts
        kinds.put(self.arrival[back] - begin, _cast, *(c[back] for c in (self.sent, read, to_host)))
        kinds.put(self.arrival[same] - begin, _identity, read[same])
        return kinds.kinds, kinds.kind_of

    def rows(self) -> npt.NDArray[np.int32]:
        """By number of a generated node: the row of its transfer, -1 for nodes that transfer nothing."""
        rows = np.full(self.end - self.begin, -1, np.int32)
        rows[self.send - self.begin] = rows[self.recv - self.begin] = np.arange(len(self.first))
        return rows

    def transfers(self, graph: Graph, incarnations: Sequence[int]) -> TransferTable:
        """The table of transfers, one row a pair; `incarnations` by interned device."""
        src, dst = self.edges.src[self.first], self.edges.dst[self.first]
        names, devices, device_names = graph.names(), graph.assigned_device_indices(), graph.device_names()
        ends = devices[src].astype(np.int64) * len(device_names) + devices[dst]
        found, taken = np.unique(ends, return_inverse=True)
        pairs = (divmod(end, len(device_names)) for end in found.tolist())
        return TransferTable(
            self.edges.id[self.first].tolist(),
            cast("list[str]", list(map(names.__getitem__, src.tolist()))),
            cast("list[str]", list(map(names.__getitem__, dst.tolist()))),
            taken.reshape(-1).tolist(),
            [Route(device_names[send], incarnations[send], device_names[recv]) for send, recv in pairs],
            self.sent.tolist(),
        )


class _Kinds:
    """Kinds of generated nodes, filled in column by column."""

    def __init__(self, count: int) -> None:
        self.kinds: list[NodeProperties] = []
        self.kind_of = np.zeros(count, np.int64)

    def put(self, numbers: Numbers, make: Callable[..., NodeProperties], *facts: Numbers | Flags) -> None:
        """Gives node `numbers[k]` the properties that `make` makes of its facts, made once for equal facts."""
        if len(numbers):
            code = np.zeros(len(numbers), np.int64)
            for fact in facts:
                code = code * _NUM_TYPES + fact
            _, first, kind = np.unique(code, return_index=True, return_inverse=True)
            self.kind_of[numbers] = kind.reshape(-1) + len(self.kinds)
            self.kinds += [make(*(fact[i].item() for fact in facts)) for i in first.tolist()]


def _rows(chosen: Flags, *columns: Ids | Numbers) -> Numbers:
    return np.stack([column[chosen] for column in columns], axis=1).astype(np.int64)
