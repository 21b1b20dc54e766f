"""Gradients of ragged tensors in variants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import shape_of
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("RaggedTensorToVariant")
def ragged_to_variant(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes this gradient."""
    *splits, values = op.inputs
    outer = splits[0] if splits else op.g.constant(0, DataType.INT64)
    shape = shape_of(op, len(splits))
    back = op.make("RaggedTensorToVariantGradient", grad, outer, shape, Tvalues=values.dtype)
    return *[None] * len(splits), back


@gradient("RaggedTensorFromVariant")
def ragged_from_variant(op: Forward, *grads: Tensor | None) -> Gradients:
    """The gradients of the values under the same splits; of variants in a vector one for each."""
    inner, rank = op.attrs["input_ragged_rank"], op.attrs["output_ragged_rank"]
    batched = rank > (max(inner, 0))
    return (op.make("RaggedTensorToVariant", op.outputs[:-1], grads[-1], batched_input=batched),)
