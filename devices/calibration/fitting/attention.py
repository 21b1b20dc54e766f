"""Fits the model of attention to shares of a peak rate; its interval is from sizes left out in turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....graph.arrays import Floats
from ...timing.fits.attention import DIRECTIONS, MOST_SHARE, AttentionModel, AttentionNumbers, Attentions
from ...timing.fits.layers import ranges_of
from .layers import LogTimeFormula, check_keys, check_shares, fit_numbers, left_out_errors, shortened, spread_of

START = (90_000, 0.95, 1.0, 2.0)
"""latency in ns, rate as a share of the peak, power of the head dims, sharpness"""
LEAST, MOST = (100, 0.05, 0.1, 1), (1e7, 2, 4, 8)


def fit_attention(
    attentions: Attentions, efficiency: Floats, peak_flops_per_s: float, *, source: str, date: str
) -> AttentionModel:
    """The model fitted to shares of `peak_flops_per_s`, by the operations of the full square, one a layer.

    InvalidArgumentError for shares that cannot be, and for fewer than six sizes of a direction.
    """
    check_shares(efficiency, len(attentions), MOST_SHARE, "attention")
    ranges = ranges_of(attentions.sizes)
    numbers = {}
    for direction in DIRECTIONS:
        fit = _DirectionFit(attentions, efficiency, peak_flops_per_s, direction, ranges["dims"])
        logs = fit_numbers(fit.formula, fit.log_ns, np.arange(len(fit.log_ns)), *fit.bounds)
        numbers[direction] = AttentionNumbers(*shortened(logs))._replace(spread=spread_of(fit.left_out()))
    return AttentionModel(numbers, peak_flops_per_s, ranges, source, date)


def attention_left_out(attentions: Attentions, efficiency: Floats, peak_flops_per_s: float) -> Floats:
    """By row ln(measured / predicted time), each size of a direction predicted by a fit of the others."""
    dims_range, errors = ranges_of(attentions.sizes)["dims"], np.empty(len(attentions))
    for direction in DIRECTIONS:
        of = attentions.is_backward == (direction == "bwd")
        errors[of] = _DirectionFit(attentions, efficiency, peak_flops_per_s, direction, dims_range).left_out()
    return errors


class _DirectionFit:
    """The rows of one direction."""

    def __init__(
        self, attentions: Attentions, efficiency: Floats, peak: float, direction: str, dims_range: tuple[int, int]
    ) -> None:
        of = attentions.is_backward == (direction == "bwd")
        self._rows, self._dims_range = attentions.where(of), dims_range
        self.log_ns = np.log(self._rows.flops * 1e9 / (peak * efficiency[of]))
        self._keys = list(zip(*(column.tolist() for column in self._rows.sizes.values()), strict=True))
        scale = np.array([1.0, peak, 1.0, 1.0])
        self.bounds = tuple(np.log(np.array(values) * scale) for values in (START, LEAST, MOST))
        check_keys(self._keys, len(START), f"attention {direction}")

    @property
    def formula(self) -> LogTimeFormula:
        """Log time of rows by logs of numbers."""

        def log_time(logs: Floats, rows: NDArray[np.int64]) -> Floats:
            numbers = AttentionNumbers(*np.exp(logs).tolist())
            return np.asarray(np.log(numbers.time_ns(self._rows.where(rows), self._dims_range)))

        return log_time

    def left_out(self) -> Floats:
        """Errors at sizes that a fit has not seen."""
        return left_out_errors(self.formula, self.log_ns, self._keys, *self.bounds)
