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


flops(
    *("Bincount", "DenseBincount", "SegmentMin", "SegmentProd"),
    *("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd"),
)(elements_read)


@flops("CumulativeLogsumexp", "HistogramFixedWidth", "IsotonicRegression")
def four_steps(c: CostContext) -> int:
    """Maximum, difference, exponential and logarithm; or difference, quotient, limit and count; or a pooled average."""
    return 4 * c.elements_in()
