"""Transfers: what `_Send` and `_Recv` nodes say of the tensor that passes between them.

Flows in: the cut edges of one partitioning, in columns. Flows out: a table of transfers, that the parts share. Always
holds: both ends of a transfer have the same row, so that they meet at one rendezvous key; texts and attrs are made
when somebody asks.

Random placement makes more transfers than a graph has nodes. So a node that transfers has the properties of its op and
element type, as a column of its graph says, and the row of the table; whatever is done once per kind of node is done
some twenty times. A session needs nothing but the keys, made in one go (`keys`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attrs import encode
from ..dtypes import DataType
from ..ops.properties import NodeProperties, join_entry
from ..ops.registry import lookup_op
from ..protos import AttrValue
from ..validate import check_given_attrs

if TYPE_CHECKING:
    from ..graph import Graph

_TEXTS = ("tensor_name", "send_device", "recv_device")
_RECVS = frozenset({"_Recv", "_HostRecv"})
ROOT_FRAME = "0:0"
TRANSFER_OPS = frozenset({"_Send", "_HostSend", "_Recv", "_HostRecv"})


class Route(NamedTuple):
    """Where a tensor leaves and arrives, shared by all transfers between two devices.

    `key` is what the rendezvous keys of these transfers begin with: both devices, the incarnation in 16 hex digits.
    """

    send_device: str
    recv_device: str
    incarnation: int
    key: str


def route(send_device: str, recv_device: str, incarnation: int) -> Route:
    """The route between two devices, with the beginning of its keys written out."""
    return Route(send_device, recv_device, incarnation, f"{send_device};{incarnation:016x};{recv_device};")


class Transfer(NamedTuple):
    """One tensor on its way: its name, its route, and the edge it stands for.

    `key_stem` is the rendezvous key up to its frame part: the route's and the tensor's name. `src` and `dst` name the
    nodes of the cut edge ("" on nodes that a client made); `start_time` is in microseconds.
    """

    tensor_name: str
    key_stem: str
    route: Route
    dtype: DataType
    src: str = ""
    dst: str = ""
    client_terminated: bool = False
    start_time: int | None = None


def _text(name: str, value: str) -> bytes:
    return join_entry(name, AttrValue(s=value.encode()).SerializeToString())


@cache
def _shared_entry(name: str, value: int | bool, type_string: str) -> bytes:
    return join_entry(name, encode(value, type_string).SerializeToString())


@cache
def _device_entry(name: str, device: str) -> bytes:
    return _text(name, device)


@cache
def transfer_kind(op: str, dtype: DataType) -> NodeProperties:
    """What all ends of transfers of one op and element type have in common."""
    is_recv = op in _RECVS
    return NodeProperties(lookup_op(op), (), () if is_recv else (dtype,), (dtype,) if is_recv else ())


class TransferProperties(NodeProperties):
    """Properties of a generated `_Send` or `_Recv`, serialised on demand."""

    __slots__ = ("transfer",)

    def __init__(self, kind: NodeProperties, transfer: Transfer) -> None:
        """`kind` is the `transfer_kind` of this end."""
        super().__init__(kind.op_def, (), kind.input_types, kind.output_types)
        self.transfer = transfer

    @property
    def entries(self) -> tuple[bytes, ...]:
        """Serialised entries of the attr map, in the order of their names."""
        if not self._entries:
            self._entries = tuple(self._serialise())
        return self._entries

    def _serialise(self) -> list[bytes]:
        transfer = self.transfer
        is_recv = self.op in _RECVS
        entries = [] if is_recv else [_shared_entry("T", transfer.dtype, "type")]
        if transfer.src:
            entries += [_text("_dst", transfer.dst), _text("_src", transfer.src)]
        if transfer.start_time is not None:
            entries.append(_shared_entry("_start_time", transfer.start_time, "int"))
        entries += [
            _shared_entry("client_terminated", transfer.client_terminated, "bool"),
            _device_entry("recv_device", transfer.route.recv_device),
            _device_entry("send_device", transfer.route.send_device),
            _shared_entry("send_device_incarnation", _as_int64(transfer.route.incarnation), "int"),
            _text("tensor_name", transfer.tensor_name),
        ]
        return [*entries, _shared_entry("tensor_type", transfer.dtype, "type")] if is_recv else entries


@dataclass(slots=True)
class TransferTable:
    """The transfers of one partitioning, a row each; the `Details` of the nodes at both ends.

    `edge`: id of the cut edge; `src`, `dst`: names of its nodes; `route`: index into `routes`; `dtype`: element type
    that is sent. `starts` has the start times, in microseconds, of ends by (row, whether it is the receiving one).
    """

    edge: list[int]
    src: list[str]
    dst: list[str]
    route: list[int]
    routes: list[Route]
    dtype: list[int]
    starts: dict[tuple[int, bool], int] = field(default_factory=dict)
    _keys: list[str] = field(default_factory=list)
    _made: dict[tuple[int, bool], TransferProperties] = field(default_factory=dict)

    def keys(self) -> list[str]:
        """The rendezvous keys outside of loops."""
        if not self._keys:
            begins = [route.key for route in self.routes]
            rows = zip(self.route, self.edge, self.src, strict=True)
            self._keys = [f"{begins[route]}edge_{edge}_{src};{ROOT_FRAME}" for route, edge, src in rows]
        return self._keys

    def properties(self, shared: NodeProperties, row: int) -> TransferProperties:
        """All properties of the end of a transfer whose kind is `shared`."""
        end = row, shared.op in _RECVS
        made = self._made.get(end)
        if made is None:
            route, tensor = self.routes[self.route[row]], f"edge_{self.edge[row]}_{self.src[row]}"
            stem, dtype = f"{route.key}{tensor};", DataType(self.dtype[row])
            start = self.starts.get(end)
            transfer = Transfer(tensor, stem, route, dtype, self.src[row], self.dst[row], start_time=start)
            made = self._made[end] = TransferProperties(shared, transfer)
        return made


def transfer_numbers(ends: Sequence[tuple[Graph, npt.NDArray[np.intp]]]) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Numbers of the transfers that sends and receives, given as ids in graphs, are ends of; per number the key.

    Ends have the same number if they meet at the rendezvous outside of loops. Some numbers may belong to no end.
    """
    tables = {id(table): table for graph, _ in ends for table in [graph.details()[0]]}
    table = next(iter(tables.values()), None)
    rows = np.concatenate([np.zeros(0, np.intp), *(graph.details()[1][nodes] for graph, nodes in ends)])
    if len(tables) == 1 and isinstance(table, TransferTable) and (rows >= 0).all():
        return rows, table.keys()
    numbers: dict[str, int] = {}
    stems = [transfer_of(graph.node_properties(node)).key_stem for graph, nodes in ends for node in nodes.tolist()]
    found = [numbers.setdefault(stem + ROOT_FRAME, len(numbers)) for stem in stems]
    return np.array(found, np.intp), list(numbers)


def _as_int64(incarnation: int) -> int:
    """An unsigned 64-bit incarnation as the signed number that the attr holds."""
    return incarnation - (1 << 64) if incarnation >= 1 << 63 else incarnation


def transfer_of(properties: NodeProperties) -> Transfer:
    """What a `_Send` or `_Recv` node transfers, whether this package or a GraphDef made the node.

    Raises InvalidArgumentError for an attr that is not what the op declares, NotFoundError for a missing one.
    """
    if isinstance(properties, TransferProperties):
        return properties.transfer
    attrs = properties.attrs
    texts, incarnation = [attrs[key] for key in _TEXTS], attrs["send_device_incarnation"]
    if not isinstance(incarnation, int) or not all(isinstance(text, bytes) for text in texts):
        check_given_attrs("", properties.op_def, attrs)  # which raises, and words it; it takes longer
    unsigned = incarnation + (1 << 64) if incarnation < 0 else incarnation
    name, sender, receiver = (text.decode(errors="replace") for text in texts)
    taken = route(sender, receiver, unsigned)
    return Transfer(
        name,
        f"{taken.key}{name};",
        taken,
        attrs["tensor_type"] if properties.op in _RECVS else attrs["T"],
        client_terminated=bool(attrs["client_terminated"]),
        start_time=attrs.get("_start_time"),
    )
