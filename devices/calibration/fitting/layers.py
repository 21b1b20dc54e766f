"""Fits the models of whole layers to shares of a peak rate, kind by kind, and says how far they are off on other sizes.

    layers, share      attention forward, 8 heads of 128 + 128, 4096 positions: 0.32 of 2250 TFLOP/s, ...
    fit_layers         AttentionModel(numbers of "fwd" and "bwd")
    left_out           by row ln(measured / predicted), with a fit of the rows of all other sizes: 0.03, ...

The fit is robust and in log time. Rows of the same sizes, such as two layouts of one layer, are left out together: each
is predicted by a fit of all other sizes. 80 % of those errors give the interval.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import ceil
from typing import Any, Generic, TypeVar  # Any: models of every sort of layers

import numpy as np
from attrs import frozen
from scipy.optimize import least_squares

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats, Numbers
from ...timing.fits.attention import AttentionModel
from ...timing.fits.grouped import GroupedModel
from ...timing.fits.layer_model import LayerColumns, LayerModel
from ...timing.fits.layers import ranges_of

PULL = 0.05
"""weight of the start in the fit: keeps a number where no row says anything of it"""

Model = TypeVar("Model", bound=LayerModel[Any, Any])


@frozen
class LayerFit(Generic[Model]):
    """What is fitted of one sort of layers: the model, and the start, least and most of its numbers.

    The number at place `rate` is given as a share of the peak rate.
    """

    model: type[Model]
    what: str
    rate: int
    start: Sequence[float]
    least: Sequence[float]
    most: Sequence[float]

    def logs(self, peak_flops_per_s: float) -> tuple[Floats, Floats, Floats]:
        """The logs of start, least and most."""
        scale = np.ones(len(self.start))
        scale[self.rate] = peak_flops_per_s
        start, least, most = (np.log(np.array(values) * scale) for values in (self.start, self.least, self.most))
        return start, least, most


# Latency in ns, rate, power of the head dims, sharpness.
ATTENTION = LayerFit(AttentionModel, "attention", 1, (90_000, 0.95, 1, 2), (100, 0.05, 0.1, 1), (1e7, 2, 4, 8))
# Latency of a group in ns, bytes/s, rate, sharpness.
GROUPED = LayerFit(GroupedModel, "grouped products", 2, (3_000, 6e12, 0.5, 1.6), (10, 1e10, 0.02, 1), (1e6, 2e13, 1, 8))


def fit_layers(
    fit: LayerFit[Model], layers: LayerColumns, share: Floats, peak_flops_per_s: float, *, source: str, date: str
) -> Model:
    """The model fitted to shares of `peak_flops_per_s`, one a layer.

    InvalidArgumentError for shares that cannot be, and for fewer than six sizes of a kind.
    """
    check_shares(share, len(layers), fit.model.MOST_SHARE, fit.what)
    numbers = {}
    for kind in layers.KINDS:
        rows = _RowsOfKind(fit, layers, share, peak_flops_per_s, kind)
        fitted = [float(f"{number:.6g}") for number in np.exp(rows.fitted(np.arange(len(rows.layers))))]
        numbers[kind] = fit.model.MAKE(*fitted)._replace(spread=spread_of(rows.left_out()))
    return fit.model(numbers, peak_flops_per_s, ranges_of(layers.sizes), source, date)


def left_out(fit: LayerFit[Any], layers: LayerColumns, share: Floats, peak_flops_per_s: float) -> Floats:
    """By row ln(measured / predicted time), each size of a kind predicted by a fit of the others."""
    errors = np.empty(len(layers))
    for kind in layers.KINDS:
        errors[layers.of_kind(kind)] = _RowsOfKind(fit, layers, share, peak_flops_per_s, kind).left_out()
    return errors


class _RowsOfKind:
    """The rows of one kind."""

    def __init__(self, fit: LayerFit[Any], layers: LayerColumns, share: Floats, peak: float, kind: str) -> None:
        of = layers.of_kind(kind)
        self.layers, self._ranges = layers.where(of), ranges_of(layers.sizes)
        self._make, self._bounds = fit.model.MAKE, fit.logs(peak)
        self._log_ns = np.log(self.layers.flops * 1e9 / (peak * share[of]))
        self._keys = list(zip(*(column.tolist() for column in self.layers.sizes.values()), strict=True))
        check_keys(self._keys, len(fit.start), f"{fit.what} {kind}")

    def _log_time(self, logs: Floats, rows: Numbers) -> Floats:
        """Log time of rows by the logs of the numbers."""
        numbers = self._make(*np.exp(logs).tolist())
        return np.asarray(np.log(numbers.time_ns(self.layers.where(rows), self._ranges)))

    def fitted(self, rows: Numbers) -> Floats:
        """The logs of the numbers with the least robust error (soft L1) of the log time of rows."""
        start, low, high = self._bounds

        def errors(logs: Floats) -> Floats:
            return np.append(self._log_time(logs, rows) - self._log_ns[rows], PULL * (logs - start))

        best = least_squares(errors, start, bounds=(low, high), loss="soft_l1", f_scale=0.1)
        return np.asarray(best.x, dtype=np.float64)

    def left_out(self) -> Floats:
        """By row ln(measured / predicted), predicted by a fit of the rows of other sizes."""
        errors = np.empty(len(self._log_ns))
        for key in dict.fromkeys(self._keys):
            is_out = np.array([other == key for other in self._keys])
            out, rest = np.flatnonzero(is_out), np.flatnonzero(~is_out)
            errors[out] = self._log_ns[out] - self._log_time(self.fitted(rest), out)
        return errors


def spread_of(errors: Floats) -> float:
    """Within which 80 % of errors of further rows lie: the ceil(0.8 (n + 1))-th of n sizes of errors."""
    sizes = np.sort(np.abs(errors))
    return float(f"{sizes[min(len(sizes), ceil(0.8 * (len(sizes) + 1))) - 1]:.6g}")


def check_shares(efficiency: Floats, rows: int, most: float, what: str) -> None:
    """InvalidArgumentError unless there is one share for each row, above 0 and at most `most`."""
    if len(efficiency) != rows:
        raise InvalidArgumentError(f"{len(efficiency)} efficiencies of {rows} rows of {what}; give one each")
    wrong = [float(share) for share in efficiency if not 0 < share <= most]
    if wrong:
        raise InvalidArgumentError(f"efficiency = {wrong[0]} of {what} must be above 0 and at most {most:g}")


def check_keys(keys: Sequence[Hashable], numbers: int, what: str) -> None:
    """InvalidArgumentError unless more sizes than numbers remain when one is left out."""
    if len(set(keys)) < numbers + 2:
        raise InvalidArgumentError(
            f"{len(set(keys))} sizes of {what} are too few for {numbers} numbers; measure at least {numbers + 2}"
        )
