"""Shape functions of the ops that fill a tensor row by row, of UnravelIndex, and of layouts of images."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import shape_from
from ...analysis.shape_functions import ShapeContext, merge, num_elements, shape_fn, unchanged, with_rank
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
