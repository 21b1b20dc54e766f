"""Ops that cost no device time: they bring values into being before the step, or pass them on under another name.

And Delay, whose time no device changes. Flows in: nothing. Flows out: registrations. Always holds: a view's outputs are
the very bytes of its first input (of the variable behind it, for a read through a handle); what is free but no view has
no input bytes worth counting. Sends and receives are here because the links are charged, not they.
"""

from __future__ import annotations

from .op_cost import CostContext, free, view, waits

view(
    "Bitcast",
    "CheckNumerics",
    "EnsureShape",
    "Enter",
    "Exit",
    "ExpandDims",
    "Identity",
    "IdentityN",
    "LoopCond",
    "Merge",
    "NextIteration",
    "PlaceholderWithDefault",
    "PreventGradient",
    "ReadVariableOp",
    "RefEnter",
    "RefExit",
    "RefIdentity",
    "RefMerge",
    "RefNextIteration",
    "RefSwitch",
    "Reshape",
    "Squeeze",
    "StopGradient",
    "Switch",
    "_Retval",
    "_SwitchN",
)
free(
    "Assert",
    "AssignVariableOp",
    "BroadcastArgs",
    "BroadcastGradientArgs",
    "ConcatOffset",
    "Const",
    "ControlTrigger",
    "DestroyResourceOp",
    "HostConst",
    "InvertPermutation",
    "IsVariableInitialized",
    "NoOp",
    "Placeholder",
    "PlaceholderV2",
    "Rank",
    "Shape",
    "ShapeN",
    "Size",
    "VarHandleOp",
    "VarIsInitializedOp",
    "Variable",
    "VariableShape",
    "VariableV2",
    "_Arg",
    "_DeviceArg",
    "_DeviceRetval",
    "_HostRecv",
    "_HostSend",
    "_Recv",
    "_Send",
)


@waits("Delay")
def delay(c: CostContext) -> int:
    """What the node says, in microseconds."""
    return int(c.attrs["micros"]) * 1000
