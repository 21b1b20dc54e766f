"""Gradients of sums, products and extrema of segments: an element gets the gradient of its segment, weighted.

Elements with negative segment numbers are in no segment and get 0; the numbers get none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import masked, number, rank_of, where
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def _of_segments(op: Forward, per_segment: Tensor) -> Tensor:
    """For each element the value of its segment; for sorted segments."""
    return op.make("GatherV2", per_segment, op.inputs[1], op.g.constant(0, DataType.INT32))


@gradient("SegmentSum")
def segment_sum(op: Forward, grad: Tensor) -> Gradients:
    return _of_segments(op, grad), None


@gradient("SegmentMean")
def segment_mean(op: Forward, grad: Tensor) -> Gradients:
    """Each element gets the segment's gradient divided by the number of its elements."""
    count = op.make("Reshape", op.make("Size", op.inputs[1]), [1])
    shape = op.make("ConcatV2", [count, _ones(op, rank_of(op, 0) - 1)], 0)
    counts = op.make("SegmentSum", op.make("Fill", shape, number(op, 1, grad)), op.inputs[1])
    return _of_segments(op, grad / counts), None


def _ones(op: Forward, count: Tensor) -> Tensor:
    return op.make("Fill", op.make("Reshape", count, [1]), 1)


@gradient("SegmentMax", "SegmentMin")
def segment_extremum(op: Forward, grad: Tensor) -> Gradients:
    """The elements that equal the extremum share the gradient equally."""
    x, segments = op.inputs
    reached = op.make("Equal", x, _of_segments(op, op.outputs[0]))
    counts = op.make("SegmentSum", op.make("Cast", reached, DstT=grad.dtype), segments)
    return masked(op, reached, _of_segments(op, grad / counts)), None


@gradient("SegmentProd")
def segment_prod(op: Forward, grad: Tensor) -> Gradients:
    """g times the product of the other elements of the segment; zeros are counted separately."""
    x, segments = op.inputs
    zero, one = number(op, 0, x), number(op, 1, x)
    is_zero = op.make("Equal", x, zero)
    zeros = op.make("SegmentSum", op.make("Cast", is_zero, DstT=DataType.INT32), segments)
    grad = masked(op, op.make("LessEqual", zeros, 1), grad)
    others = op.make("SegmentProd", where(op, is_zero, one, x), segments)
    share = where(op, is_zero, _of_segments(op, others), _of_segments(op, op.outputs[0]) / x)
    return _of_segments(op, grad) * share, None


def _of_any_segments(op: Forward, per_segment: Tensor) -> tuple[Tensor, Tensor]:
    """For each element the value of its segment, and whether it has one; numbers may be of any rank and negative."""
    segments = op.inputs[1]
    inside = op.make("GreaterEqual", segments, op.g.constant(0, segments.dtype))
    numbers = op.make("Maximum", segments, op.g.constant(0, segments.dtype))
    values = op.make("GatherV2", per_segment, numbers, op.g.constant(0, DataType.INT32))
    # `inside` gets axes of size 1 up to the rank of the elements.
    missing = op.make("Rank", values) - op.make("Rank", inside)
    shape = op.make("ConcatV2", [op.make("Shape", inside), _ones(op, missing)], 0)
    return values, op.make("Reshape", inside, shape)


def _spread(op: Forward, per_segment: Tensor) -> Tensor:
    values, inside = _of_any_segments(op, per_segment)
    return masked(op, inside, values)


@gradient("UnsortedSegmentSum")
def unsorted_segment_sum(op: Forward, grad: Tensor) -> Gradients:
    return _spread(op, grad), None, None


@gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_segment_extremum(op: Forward, grad: Tensor) -> Gradients:
    """The elements that equal the extremum share the gradient equally."""
    x, segments, count = op.inputs
    extremum, inside = _of_any_segments(op, op.outputs[0])
    reached = op.make("LogicalAnd", op.make("Equal", x, extremum), inside)
    counts = op.make("UnsortedSegmentSum", op.make("Cast", reached, DstT=grad.dtype), segments, count)
    return masked(op, reached, _spread(op, grad / counts)), None, None


@gradient("UnsortedSegmentProd")
def unsorted_segment_prod(op: Forward, grad: Tensor) -> Gradients:
    """g times the product of the other elements of the segment; zeros are counted separately."""
    x, segments, count = op.inputs
    zero, one = number(op, 0, x), number(op, 1, x)
    is_zero = op.make("Equal", x, zero)
    zeros = op.make("UnsortedSegmentSum", op.make("Cast", is_zero, DstT=DataType.INT32), segments, count)
    grad = masked(op, op.make("LessEqual", zeros, 1), grad)
    others = op.make("UnsortedSegmentProd", where(op, is_zero, one, x), segments, count)
    share = where(op, is_zero, _spread(op, others), _spread(op, op.outputs[0]) / x)
    return _spread(op, grad) * share, None, None
