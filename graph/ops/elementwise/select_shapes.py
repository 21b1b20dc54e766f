"""Shapes of ops that choose or convert elements.

Flows in: shapes of the choices and the condition. Flows out: the shape they share or broadcast to; for Bitcast, one
axis more or less.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, broadcast, merge, shape_fn, unchanged, with_rank_at_least
from ...dtypes import Shape, dtype_name, item_size

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
        return (merge(result, condition + (None,) * (len(result) - 1)),)
    return (merge(condition, result),)


@shape_fn("Bitcast")
def bitcast(c: ShapeContext) -> Sequence[Shape]:
    """Unchanged between types of one size; else the last axis holds the smaller elements of one larger element."""
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
            f"Cannot bitcast due to shape. {known[-1]} does not match {ratio}: "
            f"{dtype_name(c.input_types[0])} to {dtype_name(c.output_types[0])}"
        )
    return (known[:-1],)
