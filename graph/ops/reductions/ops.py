"""The ops of reductions, scans and segments.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp

OPS: FactsByOp = {
    "All": {},
    "Any": {},
    "ArgMax": {"is_flat": True},
    "ArgMin": {"is_flat": True},
    "Bincount": {},
    "Cumprod": {},
    "Cumsum": {},
    "CumulativeLogsumexp": {},
    "DenseBincount": {},
    "EuclideanNorm": {},
    "HistogramFixedWidth": {},
    "IsotonicRegression": {},
    "L2Loss": {},
    "Max": {},
    "Mean": {"linear_inputs": -1},
    "Min": {},
    "Prod": {},
    "SegmentMax": {},
    "SegmentMean": {},
    "SegmentMin": {},
    "SegmentProd": {},
    "SegmentSum": {},
    "Sum": {"linear_inputs": -1},
    "UnsortedSegmentMax": {},
    "UnsortedSegmentMin": {},
    "UnsortedSegmentProd": {},
    "UnsortedSegmentSum": {"sums_segments": True},
}
