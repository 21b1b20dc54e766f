"""Shape functions of ops whose number of results depends on values (Where, Unique, ListDiff): that size is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integers
from ...analysis.shape_functions import ShapeContext, normalize_axis, shape_fn, with_rank
from ...dtypes import Shape


@shape_fn("Where")
def where(c: ShapeContext) -> Sequence[Shape]:
    """An unknown number of rows, each as long as the input has axes."""
    source = c.inputs[0]
    return ((None, None if source is None else len(source)),)


@shape_fn("Unique", "UniqueWithCounts")
def unique(c: ShapeContext) -> Sequence[Shape]:
    """Vectors: the distinct elements, the number of the distinct element at each position, and the counts."""
    with_rank(c.inputs[0], 1)
    return ((None,), c.inputs[0], (None,))[: len(c.output_types)]


@shape_fn("UniqueV2", "UniqueWithCountsV2")
def unique_v2(c: ShapeContext) -> Sequence[Shape]:
    """The input's rank, and vectors as those of Unique, along the compared axis."""
    axes, source = integers(c, 1), c.inputs[0]
    if source is None:
        return (None, (None,), (None,))[: len(c.output_types)]
    if axes is not None and c.inputs[1] is not None and len(c.inputs[1]) != 1:
        raise InvalidArgumentError("axis expects a 1D vector.")
    if axes == [] and len(source) != 1:
        raise InvalidArgumentError("x expects a 1D vector.")
    size = None
    if axes is not None:
        size = source[normalize_axis(axes[0] if axes else 0, len(source))]
    return ((None,) * len(source), (size,), (None,))[: len(c.output_types)]


@shape_fn("ListDiff")
def list_diff(c: ShapeContext) -> Sequence[Shape]:
    """Two vectors of unknown length."""
    with_rank(c.inputs[0], 1)
    with_rank(c.inputs[1], 1)
    return ((None,), (None,))
