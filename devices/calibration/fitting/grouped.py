"""Fits the model of grouped products to shares of a peak rate; its interval is from sizes left out in turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....graph.arrays import Floats
from ...timing.fits.grouped import STAGES, GroupedModel, GroupedNumbers, GroupedProducts
from ...timing.fits.layers import ranges_of
from .layers import LogTimeFormula, check_keys, check_shares, fit_numbers, left_out_errors, shortened, spread_of

START = (3_000, 6e12, 0.5, 1.6)
"""latency of a group in ns, bytes/s, rate as a share of the peak, sharpness"""
LEAST, MOST = (10, 1e10, 0.02, 1), (1e6, 2e13, 1, 8)


def fit_grouped(
    grouped: GroupedProducts, efficiency: Floats, peak_flops_per_s: float, *, source: str, date: str
) -> GroupedModel:
    """The model fitted to shares of `peak_flops_per_s`, one a row.

    InvalidArgumentError for shares that cannot be, and for fewer than six sizes of a stage.
    """
    check_shares(efficiency, len(grouped), 1.0, "grouped products")
    numbers = {}
    for stage in STAGES:
        fit = _StageFit(grouped, efficiency, peak_flops_per_s, stage)
        logs = fit_numbers(fit.formula, fit.log_ns, np.arange(len(fit.log_ns)), *fit.bounds)
        numbers[stage] = GroupedNumbers(*shortened(logs))._replace(spread=spread_of(fit.left_out()))
    return GroupedModel(numbers, peak_flops_per_s, ranges_of(grouped.sizes), source, date)


def grouped_left_out(grouped: GroupedProducts, efficiency: Floats, peak_flops_per_s: float) -> Floats:
    """By row ln(measured / predicted time), each size of a stage predicted by a fit of the others."""
    errors = np.empty(len(grouped))
    for stage in STAGES:
        errors[np.array(grouped.stage) == stage] = _StageFit(grouped, efficiency, peak_flops_per_s, stage).left_out()
    return errors


class _StageFit:
    """The rows of one stage."""

    def __init__(self, grouped: GroupedProducts, efficiency: Floats, peak: float, stage: str) -> None:
        of = np.array(grouped.stage) == stage
        self._rows = grouped.where(of)
        self.log_ns = np.log(self._rows.flops * 1e9 / (peak * efficiency[of]))
        self._keys = list(zip(*(column.tolist() for column in self._rows.sizes.values()), strict=True))
        scale = np.array([1.0, 1.0, peak, 1.0])
        self.bounds = tuple(np.log(np.array(values) * scale) for values in (START, LEAST, MOST))
        check_keys(self._keys, len(START), f"grouped products {stage}")

    @property
    def formula(self) -> LogTimeFormula:
        """Log time of rows by logs of numbers."""

        def log_time(logs: Floats, rows: NDArray[np.int64]) -> Floats:
            return np.asarray(np.log(GroupedNumbers(*np.exp(logs).tolist()).time_ns(self._rows.where(rows))))

        return log_time

    def left_out(self) -> Floats:
        """Errors at sizes that a fit has not seen."""
        return left_out_errors(self.formula, self.log_ns, self._keys, *self.bounds)
