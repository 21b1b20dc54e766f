"""Where the member of a collective takes part, from the values that its node has got."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....devices.kernels.carried import carried
from ....devices.kernels.communication.collective_ops import Communicator
from ....devices.timing.bodies.body import SeatedNode
from ....devices.timing.collectives.seats import seat_from, size_bytes
from .body import dims_of

if TYPE_CHECKING:
    from ....graph.ops.properties import NodeProperties

_VALUE = "input"  # the name of what a member brings


def seat_with(kind: NodeProperties, inputs: Sequence[Any]) -> SeatedNode:
    """The seat, and the bytes that a member knows: one that only takes knows none."""

    def communicator(port: int) -> tuple[int, int]:
        carrier = carried(inputs[port], Communicator, "a communicator")
        return carrier.group, carrier.size

    seat = seat_from(kind, lambda port, _: int(np.asarray(inputs[port]).reshape(-1)[0]), communicator)
    names = [arg.name for arg in kind.op_def.input_args]
    if _VALUE not in names:
        return SeatedNode(seat, 0)
    dims = dims_of(inputs[names.index(_VALUE)])
    return SeatedNode(seat, size_bytes(kind, seat, [dims], [dims]))
