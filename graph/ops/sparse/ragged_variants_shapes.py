"""Shape functions of ragged tensors in variants."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.dims import shape_from
from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape


@shape_fn("RaggedTensorToVariant")
def ragged_tensor_to_variant(c: ShapeContext) -> Sequence[Shape]:
    """A variant for each row, or one."""
    if not c.attrs["batched_input"]:
        return ((),)
    if c.attrs["RAGGED_RANK"]:
        (splits,) = with_rank(c.inputs[0], 1)
        return ((None if splits is None else splits - 1,),)
    values = with_rank_at_least(c.inputs[0], 1)
    return ((None if values is None else values[0],),)


@shape_fn("RaggedTensorFromVariant")
def ragged_tensor_from_variant(c: ShapeContext) -> Sequence[Shape]:
    """The axes of the variants become ragged ones."""
    inner, rank = c.attrs["input_ragged_rank"], c.attrs["output_ragged_rank"]
    if inner != -1:
        with_rank(c.inputs[0], rank - inner)
    return (*[(None,)] * rank, None)


@shape_fn("RaggedTensorToVariantGradient")
def ragged_tensor_to_variant_gradient(c: ShapeContext) -> Sequence[Shape]:
    """That of the values."""
    return (shape_from(c, 2),)
