"""Costs of reductions, scans and sums of segments: one operation per element that is read."""

from __future__ import annotations

from ..op_cost import CostContext, elements_read, flops

flops(
    *("All", "Any", "ArgMax", "ArgMin", "Cumprod", "Cumsum", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"),
    *("SegmentMax", "SegmentMean", "SegmentSum", "UnsortedSegmentSum"),
)(elements_read)


@flops("L2Loss")
def l2_loss(c: CostContext) -> int:
    """A square and an addition per element."""
    return 2 * c.elements_in()
