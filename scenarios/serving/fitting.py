"""Fits the three numbers of each framework to measured deployments, and what the closed form then misses.

sums of deployments, times to the first and per further token      FrameworkNumbers(gap 31 us, prefill 1.4, burst 0.2)
logs of measured / said, features of the deployments               a surface for each of the two times
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import least_squares

from ...devices.calibration.fitting.surfaces import OF_KERNELS, fit_surface
from ...devices.timing.fits.surface import Features, Surface
from ...errors import InvalidArgumentError
from ...graph.arrays import Floats
from .frameworks import FrameworkNumbers
from .rates import PassSums, closed_form

START, LEAST, MOST = (30_000.0, 1.3, 0.3), (100.0, 0.3, 1e-3), (500_000.0, 10.0, 1.0)
"""gap in ns, prefill, burst"""
LEAST_ROWS = 6
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
        off = np.log(said(sums, FrameworkNumbers(*np.exp(logs), 0, 0)) / time_ns)
        return np.asarray((off * weights).ravel(), dtype=np.float64)

    start, least, most = (np.log(values) for values in (START, LEAST, MOST))
    best = least_squares(errors, start, bounds=(least, most + 1e-9), loss="soft_l1", f_scale=F_SCALE)
    gap, prefill, burst = (float(f"{value:.4g}") for value in np.exp(best.x))
    numbers = FrameworkNumbers(gap, prefill, burst, 0, 0)
    first, token = np.quantile(np.abs(np.log(said(sums, numbers) / time_ns)), 0.8, axis=0)
    return numbers._replace(token_spread=float(f"{token:.4g}"), first_token_spread=float(f"{first:.4g}"))


def fit_residual(features: Features, logs: Floats) -> Surface:
    """A surface over ln(measured / said), one a row."""
    fitted = fit_surface(features, logs, OF_KERNELS._replace(most_rows=len(logs), block_rows=len(logs)))
    kept = {name: column[fitted.kept] for name, column in features.items()}
    return Surface(kept, fitted.residuals, fitted.numbers)
