"""Shape functions of the ops that conditionals and loops are made of.

A loop's variables have unknown shapes, since the body may change them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.dims import common_shape
from ...analysis.shape_functions import ShapeContext, shape_fn, unchanged, with_rank
from ...dtypes import Shape

shape_fn("RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration")(unchanged)


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


@shape_fn("Merge", "RefMerge")
def merge_inputs(c: ShapeContext) -> Sequence[Shape]:
    """The part of the shape that all inputs share, as any of them may arrive; and a scalar, the index of that input."""
    return (common_shape(c.inputs), ())


@shape_fn("Enter")
def enter(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape for a loop constant; else unknown, since the loop's body may change it."""
    return (c.inputs[0] if c.attrs["is_constant"] else None,)


@shape_fn("LoopCond")
def loop_cond(c: ShapeContext) -> Sequence[Shape]:
    """A scalar."""
    return (with_rank(c.inputs[0], 0),)
