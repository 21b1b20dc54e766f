"""Shape functions of constants, placeholders, pass-through ops, control flow and the ends of an edge between devices.

Flows in: the shapes and attrs of one node. Flows out: one shape per output. Always holds: an op that hands its input
through says no more and no less than what is known of that input.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge, shape_fn, unchanged, unknown, with_rank
from ...dtypes import Shape

for _op in (
    "Identity",
    "RefIdentity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "DeepCopy",
    "GuaranteeConst",
    "DebugIdentity",
    "RefEnter",
    "Exit",
    "RefExit",
    "NextIteration",
    "RefNextIteration",
):
    shape_fn(_op)(unchanged)

for _op in ("_Arg", "_DeviceArg", "_Recv", "_HostRecv"):
    shape_fn(_op)(unknown)


@shape_fn("Const", "HostConst")
def const(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the value."""
    return (c.attrs["value"].shape,)


@shape_fn("IdentityN")
def identity_n(c: ShapeContext) -> Sequence[Shape]:
    """Every output has the shape of the input at its place."""
    return c.inputs


@shape_fn("NoOp", "ControlTrigger", "_Retval", "_DeviceRetval", "_Send", "_HostSend")
def nothing(_: ShapeContext) -> Sequence[Shape]:
    """No output."""
    return ()


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


@shape_fn("Switch", "RefSwitch")
def switch(c: ShapeContext) -> Sequence[Shape]:
    """Both branches get the shape of the data."""
    with_rank(c.inputs[1], 0)
    return (c.inputs[0], c.inputs[0])


@shape_fn("_SwitchN")
def switch_n(c: ShapeContext) -> Sequence[Shape]:
    """Every branch gets the shape of the data."""
    with_rank(c.inputs[1], 0)
    return (c.inputs[0],) * len(c.output_types)


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """What holds of every one of `shapes`: sizes where all agree, unknown elsewhere."""
    first = shapes[0]
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return None
    return tuple(
        size if all(shape is not None and shape[i] == size for shape in shapes) else None
        for i, size in enumerate(first)
    )


@shape_fn("Merge", "RefMerge")
def merge_inputs(c: ShapeContext) -> Sequence[Shape]:
    """What all inputs have in common, for any of them may arrive; and the scalar that tells which one did."""
    return (common_shape(c.inputs), ())


@shape_fn("Enter")
def enter(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape for a loop constant; else unknown, as the loop's body may change it."""
    return (c.inputs[0] if c.attrs["is_constant"] else None,)


@shape_fn("LoopCond")
def loop_cond(c: ShapeContext) -> Sequence[Shape]:
    """A scalar."""
    return (with_rank(c.inputs[0], 0),)
