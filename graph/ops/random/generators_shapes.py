"""Shape functions of the ops on generators, whose state is behind a handle; algorithms and counts are scalars."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.dims import shape_from
from ...analysis.shape_functions import ShapeContext, no_outputs, shape_fn, with_rank
from ...dtypes import Shape

_STATE = 3
"""numbers of the state that RngReadAndSkip gives"""


def _check_scalars(c: ShapeContext, *indices: int) -> None:
    """InvalidArgumentError unless these inputs may be scalars."""
    for index in indices:
        with_rank(c.inputs[index], 0)


@shape_fn("StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniformFullInt")
def stateful(c: ShapeContext) -> Sequence[Shape]:
    """The shape that input 2 holds."""
    _check_scalars(c, 1)
    return (shape_from(c, 2),)


@shape_fn("StatefulUniformInt")
def stateful_uniform_int(c: ShapeContext) -> Sequence[Shape]:
    """The shape that input 2 holds; the limits are scalars."""
    _check_scalars(c, 1, 3, 4)
    return (shape_from(c, 2),)


shape_fn("StatefulStandardNormal")(lambda c: (shape_from(c, 1),))
shape_fn("NonDeterministicInts")(lambda c: (shape_from(c, 0),))


@shape_fn("RngReadAndSkip")
def read_and_skip(c: ShapeContext) -> Sequence[Shape]:
    """The state."""
    _check_scalars(c, 1, 2)
    return ((_STATE,),)


@shape_fn("RngSkip")
def skip(c: ShapeContext) -> Sequence[Shape]:
    """No output."""
    _check_scalars(c, 1, 2)
    return no_outputs(c)
