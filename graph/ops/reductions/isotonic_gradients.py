"""Gradient of isotonic regression: the elements of a run share what flows back into the run equally."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import element, shape_of
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("IsotonicRegression", takes_none=True)
def isotonic_regression(op: Forward, grad: Tensor | None, _runs: None) -> Gradients:
    """Runs are numbered through all rows, then each mean is given back to its run."""
    if grad is None:
        return (None,)
    shape, flat = shape_of(op, 0), op.g.constant([-1], DataType.INT32)
    size = element(op, shape, -1)
    by_row = op.make("Reshape", op.outputs[1], op.make("Pack", [op.g.constant(-1, DataType.INT32), size]))
    rows = element(op, op.make("Shape", by_row), 0)
    firsts = op.make("Reshape", op.make("Range", 0, rows, 1) * size, [-1, 1])
    numbers = op.make("Reshape", by_row + firsts, flat)
    means = op.make("SegmentMean", op.make("Reshape", grad, flat), numbers)
    shared = op.make("Reshape", op.make("GatherV2", means, numbers, 0), shape)
    return (shared if op.input_types[0] == op.output_types[0] else op.make("Cast", shared, DstT=op.input_types[0]),)
