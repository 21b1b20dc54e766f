"""Where the member of a collective takes part, from the values that its node has got."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....devices.kernels.carried import carried
from ....devices.kernels.communication.collective_ops import Communicator
from ....devices.timing.bodies.body import SeatedNode
from ....devices.timing.collectives.seats import CollectiveSeat, size_bytes
from ....graph.analysis.collective_seats import SEAT, SeatPlace, seat_ports
from .body import dims_of

if TYPE_CHECKING:
    from ....graph.ops.properties import NodeProperties

_VALUE = "input"  # the name of what a member brings


def seat_with(kind: NodeProperties, inputs: Sequence[Any]) -> SeatedNode:
    """The seat, and the bytes that a member knows: one that only takes knows none."""
    ports, exchange = seat_ports(kind), kind.op_def.record.exchange
    assert ports is not None  # as the node is a member
    assert exchange is not None
    instance: int | None
    match ports.place:
        case SeatPlace.ATTRS:
            size, group, instance = (kind.attrs[name] for name in SEAT)
        case SeatPlace.NAME:
            size, group, instance = kind.attrs["num_devices"], kind.attrs["shared_name"].decode(errors="replace"), 0
        case SeatPlace.INPUTS:
            size, group, instance = (int(np.asarray(inputs[port]).reshape(-1)[0]) for port in ports.ports)
        case SeatPlace.COMMUNICATOR:
            communicator = carried(inputs[ports.ports[0]], Communicator, "a communicator")
            size, group, instance = communicator.size, communicator.group, None
    seat = CollectiveSeat(exchange.value, ports.place.group_name(group), instance, size)
    names = [arg.name for arg in kind.op_def.input_args]
    if _VALUE not in names:
        return SeatedNode(seat, 0)
    dims = dims_of(inputs[names.index(_VALUE)])
    return SeatedNode(seat, size_bytes(kind, seat, [dims], [dims]))
