"""Shapes of elementwise ops on two tensors, and of AddN and Cross.

Flows in: the operands' shapes. Flows out: the shape they broadcast to, or the one shape they must share.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import (
    ShapeContext,
    broadcast,
    broadcast_binary,
    merge,
    merge_dims,
    shape_fn,
    with_rank_at_least,
)
from ...dtypes import Shape

shape_fn(
    *("Add", "AddV2", "Sub", "Mul", "Pow", "SquaredDifference", "Maximum", "Minimum", "Atan2", "NextAfter"),
    *("Div", "RealDiv", "FloorDiv", "TruncateDiv", "DivNoNan", "FloorMod", "Mod", "TruncateMod", "MulNoNan"),
    *("Xdivy", "Xlogy", "Xlog1py", "LogicalAnd", "LogicalOr"),
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"),
    *("Less", "LessEqual", "Greater", "GreaterEqual"),
)(broadcast_binary)


@shape_fn("Equal", "NotEqual")
def equal(c: ShapeContext) -> Sequence[Shape]:
    """Broadcast; where shapes may clash without error, a scalar if they do, unknown if they might."""
    if c.attrs["incompatible_shape_error"]:
        return broadcast_binary(c)
    a, b = c.inputs
    if a is None or b is None:
        return (None,)
    try:
        result = broadcast(a, b)
    except InvalidArgumentError:
        return ((),)
    return (result if _certain(a, b) else None,)


def _certain(a: Sequence[int | None], b: Sequence[int | None]) -> bool:
    """Whether no unknown size meets one that it could clash with."""
    return all(1 in pair or None not in pair for pair in zip(reversed(a), reversed(b), strict=False))


@shape_fn("ApproximateEqual")
def approximate_equal(c: ShapeContext) -> Sequence[Shape]:
    """The one shape that both operands have."""
    return (merge(c.inputs[0], c.inputs[1]),)


@shape_fn("AddN")
def add_n(c: ShapeContext) -> Sequence[Shape]:
    """The one shape that all inputs have."""
    result: Shape = c.inputs[-1]
    for i in reversed(range(len(c.inputs) - 1)):
        try:
            result = merge(c.inputs[i], result)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"From merging shape {i} with other shapes. {error.message}") from None
    return (result,)


@shape_fn("Cross")
def cross(c: ShapeContext) -> Sequence[Shape]:
    """The one shape that both have; its last size is 3."""
    a = with_rank_at_least(c.inputs[0], 1)
    b = with_rank_at_least(c.inputs[1], 1)
    for shape in (a, b):
        if shape is not None:
            merge_dims(shape[-1], 3)
    return (merge(a, b),)
