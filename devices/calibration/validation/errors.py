"""How far predictions are off: the statistics of one part of a set.

The error of a row is predicted / measured - 1. For 1.1, 0.9 and 1.2 ms predicted where 1.0 ms was measured it is +10 %,
-10 % and +20 %: the mean of its size (MAPE) is 13.3 %, its mean (bias) +6.7 %. Rows without a measurement or without a
prediction have no error; statistics of no rows are None.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....graph.arrays import Floats
from .measured_set import PredictedBounds


class Errors(NamedTuple):
    """Statistics in percent; `worst` is the row of the largest error; None where no row has one."""

    mape_percent: float | None
    median_percent: float | None
    p90_percent: float | None
    max_percent: float | None
    bias_percent: float | None
    coverage80_percent: float | None
    worst: int | None


def relative_errors(predicted: Floats, measured: Floats) -> Floats:
    """predicted / measured - 1 by row, NaN where either is."""
    return np.asarray(predicted / measured - 1, dtype=np.float64)


def mape_percent(predicted: Floats, measured: Floats) -> float | None:
    """The mean size of the errors."""
    errors = np.abs(relative_errors(predicted, measured))
    known = np.isfinite(errors)
    return float(100 * errors[known].mean()) if known.any() else None


def errors_of(bounds: PredictedBounds, measured: Floats) -> Errors:
    """The statistics of predictions; `coverage80_percent` says how many measurements lie in their intervals."""
    errors = relative_errors(bounds.value, measured)
    known = np.isfinite(errors)
    if not known.any():
        return Errors(*[None] * 7)
    sizes = 100 * np.abs(errors[known])
    is_inside = (bounds.low <= measured) & (measured <= bounds.high)
    return Errors(
        float(sizes.mean()),
        float(np.median(sizes)),
        float(np.percentile(sizes, 90)),
        float(sizes.max()),
        float(100 * errors[known].mean()),
        float(100 * is_inside[known].mean()),
        int(np.flatnonzero(known)[np.argmax(sizes)]),
    )
