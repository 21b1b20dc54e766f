"""Gradients of segments of rows that are picked by index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import element, shape_of

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient(
    "SparseSegmentSum",
    "SparseSegmentSumWithNumSegments",
    "SparseSegmentMean",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtN",
    "SparseSegmentSqrtNWithNumSegments",
)
def sparse_segment(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes this gradient."""
    kind = op.op.removesuffix("WithNumSegments")
    rows = element(op, shape_of(op, 0), 0)
    return op.make(f"{kind}Grad", grad, op.inputs[1], op.inputs[2], rows), *[None] * (len(op.input_types) - 1)
