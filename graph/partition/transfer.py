"""The two ends of a transfer: what `_Send` and `_Recv` nodes say of the tensor that passes between them.

Flows in: one cut edge. Flows out: properties for both ends. Always holds: both ends carry the same `Transfer`, so
that they meet at one rendezvous key; attrs are only serialised when somebody asks (a session never does).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ..attrs import encode
from ..dtypes import DataType
from ..ops.registry import lookup_op
from ..properties import NodeProperties, join_entry
from ..protos import AttrValue

_RECVS = frozenset({"_Recv", "_HostRecv"})
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

    __slots__ = ("_kind", "transfer")

    def __init__(self, kind: NodeProperties, transfer: Transfer) -> None:
        """`kind` is the `transfer_kind` of this end."""
        self.op_def = kind.op_def
        self.input_types = kind.input_types
        self.output_types = kind.output_types
        self._entries = ()
        self._attrs = None
        self._kind = kind
        self.transfer = transfer

    @property
    def kind(self) -> NodeProperties:
        """One for all transfers of this end and element type."""
        return self._kind

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

    def started_at(self, start_time: int) -> TransferProperties:
        """These properties with a start time."""
        return TransferProperties(self._kind, self.transfer._replace(start_time=start_time))


def _as_int64(incarnation: int) -> int:
    """An unsigned 64-bit incarnation as the signed number that the attr holds."""
    return incarnation - (1 << 64) if incarnation >= 1 << 63 else incarnation


def transfer_of(properties: NodeProperties) -> Transfer:
    """What a `_Send` or `_Recv` node transfers, whether this package or a GraphDef made the node."""
    if isinstance(properties, TransferProperties):
        return properties.transfer
    attrs = properties.attrs
    incarnation = int(attrs["send_device_incarnation"])
    unsigned = incarnation + (1 << 64) if incarnation < 0 else incarnation
    name = attrs["tensor_name"].decode()
    taken = route(attrs["send_device"].decode(), attrs["recv_device"].decode(), unsigned)
    return Transfer(
        name,
        f"{taken.key}{name};",
        taken,
        attrs["tensor_type"] if properties.op in _RECVS else attrs["T"],
        client_terminated=bool(attrs.get("client_terminated", False)),
        start_time=attrs.get("_start_time"),
    )
