"""Shape functions of constants, placeholders, pass-through ops and the ends of an edge between devices.

Flows in: the shapes and attrs of one node. Flows out: one shape per output. Always holds: an op that hands its input
through says no more and no less than what is known of that input.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge, no_outputs, shape_fn, unchanged, unknown, with_rank
from ...dtypes import Shape

shape_fn(
    "Identity",
    "RefIdentity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "DeepCopy",
    "GuaranteeConst",
    "DebugIdentity",
)(unchanged)


shape_fn("_Arg", "_DeviceArg", "_Recv", "_HostRecv")(unknown)


@shape_fn("Const", "HostConst")
def const(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the value."""
    return (c.attrs["value"].shape,)


@shape_fn("IdentityN")
def identity_n(c: ShapeContext) -> Sequence[Shape]:
    """Every output has the shape of the input at its place."""
    return c.inputs


shape_fn("NoOp", "ControlTrigger", "_Retval", "_DeviceRetval", "_Send", "_HostSend")(no_outputs)


@shape_fn("Assert")
def assertion(c: ShapeContext) -> Sequence[Shape]:
    """No output; the condition must be a scalar."""
    with_rank(c.inputs[0], 0)
    return ()


@shape_fn("Placeholder", "PlaceholderV2")
def placeholder(c: ShapeContext) -> Sequence[Shape]:
    """The shape that was promised for the value to be fed."""
    return (c.attrs.get("shape"),)


@shape_fn("PlaceholderWithDefault")
def placeholder_with_default(c: ShapeContext) -> Sequence[Shape]:
    """The promised shape, which the default must agree with."""
    promised: Shape = c.attrs.get("shape")
    merge(c.inputs[0], promised)
    return (promised,)


@shape_fn("EnsureShape")
def ensure_shape(c: ShapeContext) -> Sequence[Shape]:
    """All that the input and the attr know together; TensorFlow wants a rank where the input has one."""
    if c.attrs["shape"] is None and c.inputs[0] is not None:
        raise InvalidArgumentError(f"Shape must be rank -1 but is rank {len(c.inputs[0])}")
    return (merge(c.inputs[0], c.attrs["shape"]),)
