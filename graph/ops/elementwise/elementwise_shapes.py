"""Shape functions of elementwise ops: one operand's shape, the shape operands broadcast to, or the one they share."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import length
from ...analysis.shape_functions import (
    ShapeContext,
    broadcast,
    broadcast_binary,
    merge,
    merge_dims,
    shape_fn,
    unchanged,
    with_rank_at_least,
)
from ...dtypes import Shape, item_size

shape_fn(
    *("Add", "AddV2", "Sub", "Mul", "Pow", "SquaredDifference", "Maximum", "Minimum", "Atan2", "NextAfter"),
    *("Div", "RealDiv", "FloorDiv", "TruncateDiv", "DivNoNan", "FloorMod", "Mod", "TruncateMod", "MulNoNan"),
    *("Xdivy", "Xlogy", "Xlog1py", "LogicalAnd", "LogicalOr"),
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"),
    *("Less", "LessEqual", "Greater", "GreaterEqual"),
)(broadcast_binary)


@shape_fn("Equal", "NotEqual")
def equal(c: ShapeContext) -> Sequence[Shape]:
    """The broadcast shape; without `incompatible_shape_error` a scalar if shapes clash, unknown if they might."""
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
    """Whether no unknown size is paired with a size that it may clash with."""
    return all(1 in pair or None not in pair for pair in zip(reversed(a), reversed(b), strict=False))


@shape_fn("AccumulateNV2")
def accumulate(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the node says its inputs have."""
    return (c.attrs["shape"],)


@shape_fn("ApproximateEqual")
def approximate_equal(c: ShapeContext) -> Sequence[Shape]:
    """The one shape that both operands have."""
    return (merge(c.inputs[0], c.inputs[1]),)


@shape_fn("AddN")
def add_n(c: ShapeContext) -> Sequence[Shape]:
    result: Shape = c.inputs[-1]
    for i in reversed(range(len(c.inputs) - 1)):
        try:
            result = merge(c.inputs[i], result)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"From merging shape {i} with other shapes. {error.message}") from None
    return (result,)


@shape_fn("Cross")
def cross(c: ShapeContext) -> Sequence[Shape]:
    """The one shape of both operands; its last size is 3."""
    a = with_rank_at_least(c.inputs[0], 1)
    b = with_rank_at_least(c.inputs[1], 1)
    for shape in (a, b):
        if shape is not None:
            merge_dims(shape[-1], 3)
    return (merge(a, b),)


shape_fn("Cast", "_HostCast", "ClipByValue", "CheckNumerics", "CheckNumericsV2", "Bucketize")(unchanged)


@shape_fn("SelectV2")
def select_broadcast(c: ShapeContext) -> Sequence[Shape]:
    """Condition and both choices broadcast."""
    return (broadcast(broadcast(c.inputs[1], c.inputs[2]), c.inputs[0]),)


@shape_fn("Select")
def select(c: ShapeContext) -> Sequence[Shape]:
    """The one shape of both choices; the condition has it too, or is a scalar, or a vector over the first axis."""
    condition, then, otherwise = c.inputs
    result = merge(then, otherwise)
    if condition is None or result is None or condition == ():
        return (result,)
    if len(condition) == 1 and len(result) >= 1:
        merge(condition, result[:1])
        return ((condition[0] if result[0] is None else result[0], *result[1:]),)
    return (merge(result, condition),)


@shape_fn("Bitcast")
def bitcast(c: ShapeContext) -> Sequence[Shape]:
    """Unchanged between types of one size; else one axis more or less, for the smaller elements of a larger one."""
    shape = c.inputs[0]
    source, target = item_size(c.input_types[0]), item_size(c.output_types[0])
    if source == target or shape is None:
        return (shape,)
    if source > target:
        return (shape + (source // target,),)
    ratio = target // source
    known = with_rank_at_least(shape, 1)
    assert known is not None
    if known[-1] not in (None, ratio):
        raise InvalidArgumentError(
            f"Cannot bitcast from {int(c.input_types[0])} to {int(c.output_types[0])} due to shape. "
            f"{known[-1]} does not match {ratio}"
        )
    return (known[:-1],)


shape_fn(
    *("Erf", "Erfc", "Erfinv", "Lgamma", "Digamma", "Ndtri", "Dawsn", "Expint", "Spence", "FresnelSin", "FresnelCos"),
    *("BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselY0", "BesselY1"),
    *("BesselK0", "BesselK0e", "BesselK1", "BesselK1e"),
)(unchanged)


shape_fn("Igamma", "Igammac", "IgammaGradA", "RandomGammaGrad", "Polygamma", "Zeta")(broadcast_binary)


@shape_fn("Betainc")
def betainc(c: ShapeContext) -> Sequence[Shape]:
    """The one shape of the inputs that are not scalars."""
    result: Shape = ()
    for shape in c.inputs:
        if shape == ():
            continue
        result = shape if result == () else merge(result, shape)
    return (result,)


shape_fn(
    *("Abs", "Neg", "Sign", "Square", "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Inv", "Reciprocal"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Sigmoid"),
    *("SqrtGrad", "RsqrtGrad", "SigmoidGrad", "TanhGrad", "InvGrad", "ReciprocalGrad"),
    *("Floor", "Ceil", "Rint", "Round", "Invert", "LogicalNot", "PopulationCount", "ZerosLike", "OnesLike"),
    *("IsNan", "IsInf", "IsFinite", "Conj", "Real", "Imag", "Angle", "ComplexAbs"),
)(unchanged)


shape_fn("Complex")(broadcast_binary)


@shape_fn("BroadcastGradientArgs")
def broadcast_gradient_args(c: ShapeContext) -> Sequence[Shape]:
    """Two vectors of unknown length."""
    length(c, 0), length(c, 1)
    return ((None,), (None,))
