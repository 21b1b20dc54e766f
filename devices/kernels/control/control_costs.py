"""Costs of what a graph is held together by: none, but for Delay, whose time no device changes.

Flows out: registrations. Always holds: a view's outputs are the very bytes of its first input; what is free but no view
has no input bytes worth counting. Sends and receives are here because the links are charged, not they.
"""

from __future__ import annotations

from ..op_cost import CostContext, free, moves, waits

free(
    "Assert",
    "Const",
    "ControlTrigger",
    "HostConst",
    "NoOp",
    "Placeholder",
    "PlaceholderV2",
    "_Arg",
    "_DeviceArg",
    "_DeviceRetval",
    "_HostRecv",
    "_HostSend",
    "_Recv",
    "_Send",
)
moves("DeepCopy", "Snapshot")


@waits("Delay")
def delay(c: CostContext) -> int:
    """What the node says, in microseconds."""
    return int(c.attrs["micros"]) * 1000
