"""Fits the three numbers of each framework to measured deployments, and what the closed form then misses.

sums of deployments, times to the first and per further token      FrameworkNumbers(gap 31 us, prefill 1.4, burst 0.2)
logs of measured / said, features of the deployments               a surface for each of the two times
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve
from scipy.optimize import least_squares

from ...devices.calibration.fitting.surfaces import OF_KERNELS, FittedSurface, fit_surface
from ...devices.timing.fits.surface import Features, Residuals, Surface
from ...errors import InvalidArgumentError
from ...graph.arrays import Floats, Numbers
from .frameworks import FrameworkNumbers
from .rates import PassSums, closed_form

START, LEAST, MOST = (0.9, 1.3, 0.3), (0.3, 0.3, 1e-3), (3.0, 10.0, 1.0)
"""overlap, prefill, burst"""
LEAST_ROWS = 6
FOLDS = 5
"""of configurations, by which intervals are measured"""
FIRST_TOKEN_WEIGHT = 0.5
"""of the time to the first token, whose queues scatter more"""
F_SCALE = 0.2


def said(sums: Sequence[PassSums], numbers: FrameworkNumbers) -> Floats:
    """Rows of times to the first and per further token, in ns."""
    return np.array([closed_form(each, numbers) for each in sums], dtype=np.float64).reshape(-1, 2)


def fit_framework(sums: Sequence[PassSums], time_ns: Floats) -> FrameworkNumbers:
    """The numbers with the least robust error in log time; InvalidArgumentError for fewer than `LEAST_ROWS` rows.

    `time_ns` has a row a deployment: time to the first token and per further token.
    """
    if len(sums) < LEAST_ROWS:
        raise InvalidArgumentError(f"{len(sums)} deployments of a framework are too few; measure {LEAST_ROWS} at least")
    weights = np.array([FIRST_TOKEN_WEIGHT, 1.0])

    def errors(logs: Floats) -> Floats:
        overlap, prefill, burst = np.exp(logs).tolist()
        off = np.log(said(sums, FrameworkNumbers(overlap, prefill, burst, 0, 0)) / time_ns)
        return np.asarray((off * weights).ravel(), dtype=np.float64)

    start, least, most = (np.log(values) for values in (START, LEAST, MOST))
    best = least_squares(errors, start, bounds=(least, most + 1e-9), loss="soft_l1", f_scale=F_SCALE)
    overlap, prefill, burst = (float(f"{value:.4g}") for value in np.exp(best.x))
    numbers = FrameworkNumbers(overlap, prefill, burst, 0, 0)
    first, token = np.quantile(np.abs(np.log(said(sums, numbers) / time_ns)), 0.8, axis=0)
    return numbers._replace(token_spread=float(f"{token:.4g}"), first_token_spread=float(f"{first:.4g}"))


def fit_residual(features: Features, logs: Floats, configurations: Numbers) -> Surface:
    """A surface over ln(measured / said), one a row; its intervals hold 80 % of configurations that it has not seen.

    Rows of a configuration say much of each other, so what a row's neighbours say of it would be too sure.
    """
    fitted = fit_surface(features, logs, OF_KERNELS._replace(most_rows=len(logs), block_rows=len(logs)))
    kept, folds = fitted.kept, configurations[fitted.kept] % FOLDS
    points = {name: column[kept] for name, column in features.items()}
    off = np.empty(len(kept))
    for fold in range(FOLDS):
        seen, unseen = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(unseen):
            mean, deviation = _part(fitted, points, seen).at({name: c[unseen] for name, c in points.items()})
            off[unseen] = np.abs(logs[kept][unseen] - mean) / deviation
    whole = _part(fitted, points, np.arange(len(kept)))
    return evolve(whole, numbers=whole.numbers._replace(quantile=float(f"{np.quantile(off, 0.8):.6g}")))


def _part(fitted: FittedSurface, points: Features, rows: Numbers) -> Surface:
    """The surface of some of the rows."""
    residuals = Residuals(fitted.residuals.residual[rows], fitted.residuals.variance[rows])
    return Surface({name: column[rows] for name, column in points.items()}, residuals, fitted.numbers)
