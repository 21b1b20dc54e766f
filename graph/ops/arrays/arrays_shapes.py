"""Shape functions of the ops that fill a tensor row by row, of UnravelIndex, of layouts of images, and of the ops whose
number of results depends on values (Where, Unique, ListDiff): that size is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integers, shape_from
from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    normalize_axis,
    num_elements,
    shape_fn,
    unchanged,
    with_rank,
)
from ...dtypes import Shape

shape_fn("InplaceUpdate", "InplaceAdd", "InplaceSub", "DataFormatDimMap", "DataFormatVecPermute")(unchanged)


@shape_fn("Empty")
def empty(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the input says."""
    with_rank(c.inputs[0], 1)
    return (shape_from(c, 0),)


@shape_fn("ParallelConcat")
def parallel_concat(c: ShapeContext) -> Sequence[Shape]:
    """The declared shape; the inputs have one row each, and all shapes must be known."""
    shape: Shape = c.attrs["shape"]
    if shape is None or None in shape:
        raise InvalidArgumentError("shape attr must be fully defined.")
    for number, x in enumerate(c.inputs):
        if x is None or None in x:
            raise InvalidArgumentError("All input shapes must be fully defined.")
        if not x:
            raise InvalidArgumentError(
                f"The rank of all input shapes must be greater than 0, but input {number} had rank 0."
            )
        if x[0] != 1:
            raise InvalidArgumentError("Size of first dimension must be 1.")
        merge(x, c.inputs[0])
    return (shape,)


@shape_fn("UnravelIndex")
def unravel_index(c: ShapeContext) -> Sequence[Shape]:
    """A row per axis; a vector for a scalar."""
    indices, (rank,) = c.inputs[0], with_rank(c.inputs[1], 1)
    if indices is None:
        return (None,)
    return ((rank, num_elements(indices)) if indices else (rank,),)


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
