"""The role of a node in a plan, by its op: computed by a kernel, or carried out by the executor itself.

    Const       CONST        its value is in a slot from the beginning
    Identity    ALIAS        shares the slot of its input
    _Send       SEND         the executor gives the tensor to the rendezvous
    MatMul      COMPUTE      a kernel

The executor carries out transfers, control flow and arguments. Constants, identities and no-ops cost nothing at run
time. An op that has none of these classes in its record is computed by a kernel.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from ...graph.ops.record import NodeClass, OpRecord, record_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...graph.arrays import Flags
    from ...graph.ops.properties import NodeProperties
    from ...graph.ops.registry import OpSignature


class Role(IntEnum):
    """What the executor does for a node."""

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
    """its outputs come later than its inputs: a loop, or a kernel that waits for something"""
    LAUNCH = 14
    """takes the inputs of a deferred node and starts it"""
    ARRIVAL = 15
    """has the outputs of a deferred node; it stands right behind the launch in the columns"""


_OF_CLASS: Final[Mapping[NodeClass, Role]] = {
    NodeClass.ARG: Role.ARG,
    NodeClass.RETVAL: Role.RETVAL,
    NodeClass.SEND: Role.SEND,
    NodeClass.HOST_SEND: Role.SEND,
    NodeClass.RECV: Role.RECV,
    NodeClass.HOST_RECV: Role.RECV,
    NodeClass.SWITCH: Role.SWITCH,
    NodeClass.MERGE: Role.MERGE,
    NodeClass.CONSTANT: Role.CONST,
    NodeClass.NO_OP: Role.NOTHING,
    NodeClass.CONTROL_TRIGGER: Role.TRIGGER,
    NodeClass.ENTER: Role.FRAME,
    NodeClass.EXIT: Role.FRAME,
    NodeClass.NEXT_ITERATION: Role.FRAME,
}
_OF_NAME: Final[Mapping[str, Role]] = {  # the compiler's own ops, and one that shares its class with Switch
    "_Deferred": Role.DEFERRED,
    "_Launch": Role.LAUNCH,
    "_Arrival": Role.ARRIVAL,
    "_SwitchN": Role.SWITCH_N,
}


@cache
def role_flags(*roles: Role) -> Flags:
    """By role: whether it is one of these, so that `role_flags(*roles)[codes]` is a cheap `np.isin(codes, roles)`."""
    flags = np.zeros(len(Role), np.bool_)
    flags[list(roles)] = True
    return flags


def roles_of(kinds: Iterable[NodeProperties]) -> list[Role]:
    """By kind: the role of its nodes."""
    return [_role_of_signature(p.op_def) for p in kinds]


def role_of(op: str) -> Role:
    """The role of nodes of that op."""
    return _role(record_of(op))


@cache
def _role_of_signature(op_def: OpSignature) -> Role:
    """The role of nodes of an op; a thousand partitions of a large cluster ask for the same few ops."""
    return _role(op_def.record)


def _role(record: OpRecord) -> Role:
    if record.passes_on:
        return Role.ALIAS
    return _OF_NAME.get(record.name) or _OF_CLASS.get(record.node_class, Role.COMPUTE)
