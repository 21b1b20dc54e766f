"""Transfers: the tensors between `_Send` and `_Recv` nodes, in one table per partitioning that all partitions share.

Both ends of a transfer refer to the same row, from which both keys of the rendezvous are made. Random placement makes
more transfers than the graph has nodes. So a transferring node only stores its kind (op and element type) and its row;
its attrs are serialised on demand, and work per kind of node is done some twenty times only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from ..attrs import encode
from ..dtypes import DataType
from ..ops.properties import NodeProperties, join_entry
from ..ops.registry import lookup_op
from ..protos import AttrValue
from ..validate import check_given_attrs

_TEXTS = ("tensor_name", "send_device", "recv_device")


class TransferRoute(NamedTuple):
    """The devices of a transfer and the sender's incarnation; transfers between the same devices share it."""

    send_device: str
    incarnation: int
    recv_device: str


class TransferKey(NamedTuple):
    """What a send and a receive have in common, so that they meet at the rendezvous."""

    tensor_name: str
    send_device: str
    recv_device: str

    def __str__(self) -> str:
        return f"{self.tensor_name!r} from {self.send_device!r} to {self.recv_device!r}"


class TransferredTensor(NamedTuple):
    """One transferred tensor: its name, its route, and the cut edge.

    `src` and `dst` name the nodes of the edge ("" on nodes that a client made); `start_time` is in microseconds.
    """

    tensor_name: str
    route: TransferRoute
    dtype: DataType
    src: str = ""
    dst: str = ""
    client_terminated: bool = False
    start_time: int | None = None

    @property
    def key(self) -> TransferKey:
        """The same at both ends, even where only the sender's task knows the incarnation."""
        return TransferKey(self.tensor_name, self.route.send_device, self.route.recv_device)


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
    """The properties that all ends of transfers of one op and element type share; of the attrs only the type."""
    op_def = lookup_op(op)
    is_recv = op_def.record.is_recv
    entry = _shared_entry("tensor_type" if is_recv else "T", dtype, "type")
    return NodeProperties(op_def, (entry,), () if is_recv else (dtype,), (dtype,) if is_recv else ())


class TransferProperties(NodeProperties):
    """Properties of a generated `_Send` or `_Recv`, serialised on demand."""

    __slots__ = ("transfer",)

    def __init__(self, kind: NodeProperties, transfer: TransferredTensor) -> None:
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
        is_recv = self.op_def.record.is_recv
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
    """The transfers of one partitioning, one row each; the `Details` of the nodes at both ends.

    `edge` has the ids of the cut edges; `src` and `dst` the names of their nodes; `route` indices into `routes`;
    `dtype` the element types that are sent; `starts` the start times, in microseconds, by (row, whether the end is the
    receiving one).
    """

    edge: list[int]
    src: list[str]
    dst: list[str]
    route: list[int]
    routes: list[TransferRoute]
    dtype: list[int]
    starts: dict[tuple[int, bool], int] = field(default_factory=dict)
    remarks: Mapping[str, bytes] = field(default_factory=dict)
    """by name of a node that is sent, what both ends say of it: its debug info (see `NodeProperties`)"""
    _made: dict[tuple[int, bool], TransferProperties] = field(default_factory=dict)

    def tensor_name(self, row: int) -> str:
        """The name of the tensor of a transfer."""
        return f"edge_{self.edge[row]}_{self.src[row]}"

    def transfer(self, row: int, *, is_recv: bool) -> TransferredTensor:
        """The transfer of a row as one of its ends has it."""
        return TransferredTensor(
            self.tensor_name(row),
            self.routes[self.route[row]],
            DataType(self.dtype[row]),
            self.src[row],
            self.dst[row],
            start_time=self.starts.get((row, is_recv)),
        )

    def properties(self, shared: NodeProperties, row: int) -> TransferProperties:
        """All properties of the end of a transfer whose kind is `shared`."""
        is_recv = shared.op_def.record.is_recv
        known = self._made.get((row, is_recv))
        if known is None:
            known = self._made[row, is_recv] = TransferProperties(shared, self.transfer(row, is_recv=is_recv))
            known.remarks = self.remarks.get(self.src[row], b"")
        return known


def _as_int64(incarnation: int) -> int:
    """An unsigned 64-bit incarnation as the signed number in the attr."""
    return incarnation - (1 << 64) if incarnation >= 1 << 63 else incarnation


def transfer_of(properties: NodeProperties) -> TransferredTensor:
    """The transfer of a `_Send` or `_Recv` node, whether this package or a GraphDef made the node.

    Raises InvalidArgumentError for an attr that does not fit the op's declaration, NotFoundError for a missing one.
    """
    if isinstance(properties, TransferProperties):
        return properties.transfer
    attrs = properties.attrs
    texts, incarnation = [attrs[key] for key in _TEXTS], attrs["send_device_incarnation"]
    if not isinstance(incarnation, int) or not all(isinstance(text, bytes) for text in texts):
        check_given_attrs("", properties.op_def, attrs)  # the full check, which is slower, raises the error
    unsigned = incarnation + (1 << 64) if incarnation < 0 else incarnation
    name, sender, receiver = (text.decode(errors="replace") for text in texts)
    return TransferredTensor(
        name,
        TransferRoute(sender, unsigned, receiver),
        attrs["tensor_type"] if properties.op_def.record.is_recv else attrs["T"],
        client_terminated=bool(attrs["client_terminated"]),
        start_time=attrs.get("_start_time"),
    )
