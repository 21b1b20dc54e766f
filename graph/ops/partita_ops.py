"""Ops that TensorFlow lacks and Partita has: declared in words, with the arguments that they take from host memory.

    Partita>AllToAllV    an all-to-all of which every member says how many rows each of the others gets
    Partita>AllGather    CollectiveGatherV2 for bfloat16 too

Their names begin with "Partita>", so that none of TensorFlow's can be meant.
"""

from __future__ import annotations

from ..protos import OpDef
from .declaration import op_def_from_words

_ALL_TO_ALL_V = """
    Partita>AllToAllV
    input input: T                               # rows along axis 0, those for member 0 first
    input send_counts: Tcounts                   # how many of them each member gets
    input group_size: int32
    input group_key: int32
    input instance_key: int32
    input ordering_token: Nordering_token * resource
    output received: T                           # rows in the order of the members that sent them
    output received_counts: Tcounts              # how many came from each
    attr T: {bfloat16, float, half, double, int32, int64}
    attr Tcounts: {int32, int64} = int32
    attr communication_hint: string = "auto"
    attr timeout_seconds: float = 0.0
    attr is_stateless: bool = false
    attr Nordering_token: int >= 0 = 0
    stateful
"""

_ALL_GATHER = """
    Partita>AllGather
    input input: T
    input group_size: int32
    input group_key: int32
    input instance_key: int32
    input ordering_token: Nordering_token * resource
    output data: T                               # the rows of all members, in the order of their ranks
    attr T: {bfloat16, float, half, double, int32, int64}
    attr communication_hint: string = "auto"
    attr timeout_seconds: float = 0.0
    attr is_stateless: bool = false
    attr Nordering_token: int >= 0 = 0
    stateful
"""

HOST_ARGS = {
    "Partita>AllGather": frozenset({"group_size", "group_key", "instance_key"}),
    "Partita>AllToAllV": frozenset({"send_counts", "group_size", "group_key", "instance_key", "received_counts"}),
}
"""the arguments in host memory, by op, on devices of every kind"""


def partita_ops() -> list[OpDef]:
    """The declarations, sorted by name."""
    return [op_def_from_words(words) for words in (_ALL_GATHER, _ALL_TO_ALL_V)]
