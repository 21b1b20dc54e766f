"""Which nodes the executor carries out by itself, and how: transfers, control flow, arguments, and what costs nothing.

Flows in: op names. Flows out: a `Role` per op. Always holds: an op that is not in the table is computed by a kernel.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...graph.ops.properties import NodeProperties


class Role(IntEnum):
    """How a node is carried out."""

    COMPUTE = 0
    """call its kernel"""
    ARG = 1
    RETVAL = 2
    SEND = 3
    RECV = 4
    SWITCH = 5
    SWITCH_N = 6
    MERGE = 7
    CONST = 8
    """its value is in its slot before the step starts"""
    ALIAS = 9
    """its output shares the slot of its input"""
    NOTHING = 10
    """only orders other nodes"""
    TRIGGER = 11
    """only orders other nodes, and is never dead"""
    FRAME = 12
    """enters, leaves or advances a loop"""
    DEFERRED = 13
    """gives its outputs later: a loop, or a kernel that waits for something"""
    LAUNCH = 14
    """takes the inputs of a deferred node and starts it"""
    ARRIVAL = 15
    """where the outputs of a deferred node arrive; stands right behind its launch"""


_ROLES: Final[Mapping[str, Role]] = {
    "_Arg": Role.ARG,
    "_DeviceArg": Role.ARG,
    "_Retval": Role.RETVAL,
    "_DeviceRetval": Role.RETVAL,
    "_Send": Role.SEND,
    "_HostSend": Role.SEND,
    "_Recv": Role.RECV,
    "_HostRecv": Role.RECV,
    "Switch": Role.SWITCH,
    "RefSwitch": Role.SWITCH,
    "_SwitchN": Role.SWITCH_N,
    "Merge": Role.MERGE,
    "RefMerge": Role.MERGE,
    "Const": Role.CONST,
    "HostConst": Role.CONST,
    "Identity": Role.ALIAS,
    "RefIdentity": Role.ALIAS,
    "Snapshot": Role.ALIAS,
    "StopGradient": Role.ALIAS,
    "PreventGradient": Role.ALIAS,
    "LoopCond": Role.ALIAS,
    "NoOp": Role.NOTHING,
    "ControlTrigger": Role.TRIGGER,
    "Enter": Role.FRAME,
    "RefEnter": Role.FRAME,
    "Exit": Role.FRAME,
    "RefExit": Role.FRAME,
    "NextIteration": Role.FRAME,
    "RefNextIteration": Role.FRAME,
    "_Deferred": Role.DEFERRED,
    "_Launch": Role.LAUNCH,
    "_Arrival": Role.ARRIVAL,
}


def roles_of(kinds: Iterable[NodeProperties]) -> list[Role]:
    """The roles of nodes with these properties."""
    find = _ROLES.get
    return [find(p.op_def.name, Role.COMPUTE) for p in kinds]


def role_of(op: str) -> Role:
    """The role of nodes of that op."""
    return _ROLES.get(op, Role.COMPUTE)
