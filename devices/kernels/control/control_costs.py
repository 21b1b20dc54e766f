"""Costs of control flow, constants, transfers and other ops that compute nothing: none, except for Delay.

A view's outputs are the bytes of its first input. Sends and receives are free here because the links are charged for
them.
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
    """The time that the attr states, in microseconds, converted to nanoseconds."""
    return int(c.attrs["micros"]) * 1000
