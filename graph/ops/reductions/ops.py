"""The ops of reductions, scans and segments.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp

OPS: FactsByOp = {
    "All": {"merges_by": "and"},
    "Any": {"merges_by": "or"},
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
    "L2Loss": {"merges_by": "Add"},
    "Max": {"merges_by": "Max"},
    "Mean": {"linear_inputs": -1, "merges_by": "Mean"},
    "Min": {"merges_by": "Min"},
    "Prod": {"merges_by": "Mul"},
    "SegmentMax": {},
    "SegmentMean": {},
    "SegmentMin": {},
    "SegmentProd": {},
    "SegmentSum": {},
    "Sum": {"linear_inputs": -1, "merges_by": "Add"},
    "UnsortedSegmentMax": {},
    "UnsortedSegmentMin": {},
    "UnsortedSegmentProd": {},
    "UnsortedSegmentSum": {"sums_segments": True},
}
