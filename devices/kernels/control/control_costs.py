"""Costs of control flow, constants, transfers and other ops that compute nothing: none, or a time of the host.

A view's outputs are the bytes of its first input. Sends and receives are free here because the links are charged for
them.
"""

from __future__ import annotations

from ..host_times import PASS_NS
from ..op_cost import CostContext, elements_read, flops, free, moves, takes_host_time, waits

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
takes_host_time(
    PASS_NS,
    *("Abort", "BatchFunction", "DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3"),
    *("Error", "GuaranteeConst", "InvalidRefType", "Print", "PrintV2", "Timestamp", "ToBool"),
)
flops("DebugNanCount")(elements_read)


@flops("DebugNumericSummary", "DebugNumericSummaryV2")
def summary(c: CostContext) -> int:
    """Per element: six classes are told apart, minimum, maximum, sum and squared deviation."""
    return 11 * c.elements_in()


@waits("Delay")
def delay(c: CostContext) -> int:
    """The time that the attr states, in microseconds, converted to nanoseconds."""
    return int(c.attrs["micros"]) * 1000
