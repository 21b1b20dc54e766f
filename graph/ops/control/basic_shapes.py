"""Shape functions of constants, placeholders, pass-through ops, Send and Recv."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge, no_outputs, shape_fn, unchanged, unknown, with_rank
from ...dtypes import Shape
from ...versions import LAST_WITH_SCALARS_FOR_ANYTHING
from ..properties import Attrs

shape_fn(
    "Identity",
    "RefIdentity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "DeepCopy",
    "GuaranteeConst",
)(unchanged)
shape_fn("_Arg", "_DeviceArg", "_Recv", "_HostRecv")(unknown)


@shape_fn("Const", "HostConst")
def const(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the value, whose elements are not looked at."""
    attrs = c.attrs
    return (attrs.tensor_shape("value") if isinstance(attrs, Attrs) else attrs["value"].shape,)


@shape_fn("IdentityN")
def identity_n(c: ShapeContext) -> Sequence[Shape]:
    """Output i has the shape of input i."""
    return c.inputs


shape_fn("NoOp", "ControlTrigger", "Assert", "_Retval", "_DeviceRetval", "_Send", "_HostSend")(no_outputs)


@shape_fn("Placeholder", "PlaceholderV2")
def placeholder(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the attr declares for the value to be fed."""
    declared: Shape = c.attrs.get("shape")
    return (None if declared == () and c.producer <= LAST_WITH_SCALARS_FOR_ANYTHING else declared,)


@shape_fn("PlaceholderWithDefault")
def placeholder_with_default(c: ShapeContext) -> Sequence[Shape]:
    """The declared shape, which the default must agree with."""
    promised: Shape = c.attrs.get("shape")
    merge(c.inputs[0], promised)
    return (promised,)


@shape_fn("EnsureShape")
def ensure_shape(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape merged with the attr; TensorFlow wants a rank in the attr where the input has one."""
    if c.attrs["shape"] is None and c.inputs[0] is not None:
        raise InvalidArgumentError(f"Shape must be rank -1 but is rank {len(c.inputs[0])}")
    if c.attrs["shape"] is not None:
        with_rank(c.inputs[0], len(c.attrs["shape"]))
    return (merge(c.attrs["shape"], c.inputs[0]),)
