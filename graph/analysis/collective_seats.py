"""Where a node says in which collective it takes part: the size and key of its group, and its instance.

version 1     attrs group_size, group_key, instance_key
version 2     inputs of these names
NCCL          attrs num_devices and shared_name; there is one instance
version 3     a communicator, whose inputs are the key, the rank and the size; instances are counted as they begin

A number in the attr `_instance` of version 1 or 2 is added to the instance: collectives that share one input are told
apart by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from ...errors import InvalidArgumentError
from ..ops.properties import NodeProperties
from ..ops.record import Exchange


class SeatPlace(Enum):
    """What says it."""

    ATTRS = auto()
    NAME = auto()
    INPUTS = auto()
    COMMUNICATOR = auto()

    def group_name(self, key: object) -> str:
        """What a group is called: keys of different places do not meet."""
        if self is SeatPlace.NAME:
            return f"'{key}' of NCCL"
        return f"{key} of communicators" if self is SeatPlace.COMMUNICATOR else str(key)


class SeatPorts(NamedTuple):
    """By what a node says its seat; `ports` are the inputs with size, key and instance, or with the communicator."""

    place: SeatPlace
    ports: tuple[int, ...] = ()


SEAT = ("group_size", "group_key", "instance_key")
INSTANCE = "_instance"
"""the attr that is added to the instance key, of collectives whose instances differ though they share one input"""
INSTANCE_STEP = 1 << 24
"""between the instance of a collective and that of its gradient"""
AGAIN_STEP = 1 << 23
"""between the instance of a collective and that of its copy, where it is computed again for its gradient"""
IMBALANCE = "_imbalance"
"""the attr of exchanges of unequal parts: how many times the mean the busiest member sends, which the clock assumes"""
MOVED = "_moved"
"""the attr of collectives that a framework does in another type: its bytes by those of the tensor, for the clock"""
MESH, AXIS = "_mesh", "_axis"
"""the attrs of collectives in the program of one rank: the sizes of all axes, and along which of them it runs"""
GRADIENT_OF = "_gradient_of"
"""the attr of gradients of collectives: the name of the collective"""
_COMMUNICATOR = "communicator"


def seat_ports(kind: NodeProperties) -> SeatPorts | None:
    """How nodes of this kind say their seat; None of those that take part in nothing."""
    if kind.op_def.record.exchange in (None, Exchange.NOTHING):
        return None
    if all(name in kind.attrs for name in SEAT):
        return SeatPorts(SeatPlace.ATTRS)
    names = [arg.name for arg in kind.op_def.input_args]  # only the last of them may be a list
    if set(SEAT) <= set(names):
        return SeatPorts(SeatPlace.INPUTS, tuple(names.index(name) for name in SEAT))
    if _COMMUNICATOR in names:
        return SeatPorts(SeatPlace.COMMUNICATOR, (names.index(_COMMUNICATOR),))
    return SeatPorts(SeatPlace.NAME)


def instance_offset(attrs: Mapping[str, Any]) -> int:
    """What is added to the instance key; InvalidArgumentError for an attr that is no number."""
    offset = attrs.get(INSTANCE, 0)
    if type(offset) is not int:
        raise InvalidArgumentError(f"attr {INSTANCE} must be an int that is added to instance_key, not {offset!r}")
    return offset
