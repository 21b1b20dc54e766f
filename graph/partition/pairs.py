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

import numpy as np
import numpy.typing as npt

from ..columns import CONTROL_SLOT
from ..dtypes import DataType, is_ref
from ..graph import Graph, Ids
from ..properties import NodeProperties, properties_of
from .transfer import Route, Transfer, TransferProperties, route, transfer_kind

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
        self.end = int(start[-1] + counts[-1]) if len(start) else first_number

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

    def make_nodes(
        self, graph: Graph, new_name: Callable[[str], str], incarnations: Sequence[int]
    ) -> tuple[list[str], list[NodeProperties]]:
        """Names and properties of all generated nodes, by number; `incarnations` by interned device."""
        names: list[str] = []
        properties: list[NodeProperties] = []
        describe = _Describer(graph, incarnations).describe
        sends, recvs = _kinds_of_ends("_Send", "_HostSend"), _kinds_of_ends("_Recv", "_HostRecv")
        edges, at = self.edges, self.first
        columns = (edges.id, edges.src, edges.dst, edges.from_host, edges.to_host, edges.dtype)
        rows = zip(*(column[at].tolist() for column in columns), self.sent.tolist(), self.control.tolist(), strict=True)
        for edge, src, dst, from_host, to_host, dtype, sent, control in rows:
            name, transfer = describe(edge, src, dst, sent)
            if control:
                names.append(new_name(f"{name}/ctrl"))
                properties.append(empty_constant())
            if sent != dtype:
                names.append(new_name(name))
                properties.append(_cast(dtype, sent, from_host))
            names += (new_name(name), new_name(name))
            send = TransferProperties(sends[from_host][sent], transfer)
            properties += (send, TransferProperties(recvs[to_host][sent], transfer))
            if sent != dtype or control:
                names.append(new_name(name))
                properties.append(_cast(sent, dtype, to_host) if sent != dtype else _identity(dtype))
        return names, properties


def _rows(chosen: Flags, *columns: Ids | Numbers) -> Numbers:
    return np.stack([column[chosen] for column in columns], axis=1).astype(np.int64)


def _kinds_of_ends(on_device: str, on_host: str) -> tuple[list[NodeProperties], list[NodeProperties]]:
    """The kinds of one end of a transfer by element type, in device and in host memory."""
    types = [DataType(number) for number in range(_NUM_TYPES)]
    device, host = ([transfer_kind(op, dtype) for dtype in types] for op in (on_device, on_host))
    return device, host


class _Describer:
    """Says of rows of a pair table what both ends say of the tensor."""

    def __init__(self, graph: Graph, incarnations: Sequence[int]) -> None:
        self._names = graph.names()
        self._devices = graph.assigned_device_indices().tolist()
        self._device_names = graph.device_names()
        self._incarnations = incarnations
        self._types = [DataType(number) for number in range(_NUM_TYPES)]
        self._routes: dict[tuple[int, int], Route] = {}

    def describe(self, edge: int, src: int, dst: int, sent: int) -> tuple[str, Transfer]:
        """Name of the source node, and the transfer."""
        name, consumer = str(self._names[src]), str(self._names[dst])
        ends = self._devices[src], self._devices[dst]
        taken = self._routes.get(ends)
        if taken is None:
            taken = self._routes[ends] = self._route(*ends)
        tensor = f"edge_{edge}_{name}"
        return name, Transfer(tensor, f"{taken.key}{tensor};", taken, self._types[sent], name, consumer)

    def _route(self, send: int, recv: int) -> Route:
        return route(self._device_names[send], self._device_names[recv], self._incarnations[send])
