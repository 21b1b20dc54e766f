"""Partita's own ops by which devices exchange tensors, declared in words."""

from __future__ import annotations

_SEAT = frozenset({"group_size", "group_key", "instance_key"})
_WHERE = """
    input group_size: int32
    input group_key: int32
    input instance_key: int32
    input ordering_token: Nordering_token * resource"""
_TYPES = "attr T: {bfloat16, float, half, double, int32, int64}"
_SETTINGS = """
    attr communication_hint: string = "auto"
    attr timeout_seconds: float = 0.0
    attr is_stateless: bool = false
    attr Nordering_token: int >= 0 = 0
    stateful"""

ALL_GATHER = f"""
    Partita>AllGather
    input input: T                               # as CollectiveGatherV2, of bfloat16 too{_WHERE}
    output data: T                               # the rows of all members, in the order of their ranks
    {_TYPES}{_SETTINGS}
"""
ALL_TO_ALL_V = f"""
    Partita>AllToAllV
    input input: T                               # rows along axis 0, those for member 0 first
    input send_counts: Tcounts                   # how many of them each member gets{_WHERE}
    output received: T                           # rows in the order of the members that sent them
    output received_counts: Tcounts              # how many came from each
    {_TYPES}
    attr Tcounts: {{int32, int64}} = int32{_SETTINGS}
"""
COLLECTIVE_PERMUTE = f"""
    Partita>CollectivePermute
    input input: T                               # of one shape on all members{_WHERE}
    output output: T                             # what the member has that is `shift` before, in the ring of members
    attr shift: int = 1
    {_TYPES}{_SETTINGS}
"""
COPIED_OVER = f"""
    Partita>CopiedOver
    input input: T                               # what every member of a group has a copy of
    input gradient_group_size: int32             # the seat of the sum that is its gradient
    input gradient_group_key: int32
    input gradient_instance_key: int32
    output output: T                             # the same
    {_TYPES}
"""

DECLARATIONS = (ALL_GATHER, ALL_TO_ALL_V, COLLECTIVE_PERMUTE, COPIED_OVER)
HOST_ARGS = {
    "Partita>AllGather": _SEAT,
    "Partita>AllToAllV": _SEAT | {"send_counts", "received_counts"},
    "Partita>CollectivePermute": _SEAT,
    "Partita>CopiedOver": frozenset({"gradient_group_size", "gradient_group_key", "gradient_instance_key"}),
}
"""the arguments in host memory, by op"""
