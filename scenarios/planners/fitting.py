"""Fits the numbers of training to measured steps of several models of GPU.

    fit_numbers([FitRows("A100-80GB", terms, step_ns), FitRows("B200-SXM", ...)])
        .of("A100-80GB")     PlanNumbers(products 0.99, memory 0.81, launch_ns 65,000, ...)
        .of("H100-SXM")      the numbers that devices have in common: "transferred", with a wider interval

In log space every number has a prior (`PRIORS`), and each model of GPU its own deviations from what they share, as wide
as `PlanNumber.between`, 0 for none. Errors of log time are in units of `SIGMA`, and large ones count linearly: a few
runs of any cluster are slow for reasons of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from ...errors import InvalidArgumentError
from ...graph.arrays import Floats
from .numbers import PRIORS, PlanNumbers, TrainingNumbers
from .times.assembly import assembled
from .times.terms import StepTerms

SIGMA = 0.05
LEAST_ROWS = 6
MOST_STEPS = 60
SPREAD_QUANTILE = 0.8


class FitRows(NamedTuple):
    """Measured steps of one model of GPU: their terms (`times.terms.joined`) and times in ns, by row."""

    device: str
    terms: StepTerms
    step_ns: Floats


def fit_numbers(rows: Sequence[FitRows]) -> TrainingNumbers:
    """The numbers by model of GPU and those in common.

    InvalidArgumentError for fewer than `LEAST_ROWS` steps, and for two `FitRows` of one model of GPU.
    """
    for device, times in Counter(each.device for each in rows).items():
        if times > 1:
            raise InvalidArgumentError(f"{times} sets of steps are of {device!r}; join them to one `FitRows`")
    count = sum(len(each.step_ns) for each in rows)
    if count < LEAST_ROWS:
        raise InvalidArgumentError(f"{count} measured steps are too few for a fit; give {LEAST_ROWS} or more")
    names = list(PRIORS)
    start = np.log([PRIORS[name].value for name in names])
    widths = np.array([PRIORS[name].width for name in names])
    own = [i for i, name in enumerate(names) if PRIORS[name].between]
    between = np.array([PRIORS[names[i]].between for i in own])
    shared = len(names)

    def numbers_of(values: Floats, device: int | None) -> PlanNumbers:
        logs = values[:shared].copy()
        if device is not None:
            logs[own] += values[shared + device * len(own) :][: len(own)]
        return PlanNumbers(**dict(zip(names, np.exp(logs).tolist(), strict=True)))

    def errors(values: Floats) -> Floats:
        parts = [(values[:shared] - start) / widths]
        for i, each in enumerate(rows):
            parts.append(_soft(np.log(assembled(each.terms, numbers_of(values, i)).step_ns / each.step_ns) / SIGMA))
            parts.append(values[shared + i * len(own) :][: len(own)] / between)
        return np.concatenate(parts)

    first = np.concatenate([start, np.zeros(len(own) * len(rows))])
    best = least_squares(errors, first, max_nfev=MOST_STEPS).x
    numbers = {each.device: numbers_of(best, i) for i, each in enumerate(rows)}
    return TrainingNumbers(_with_spreads(rows, numbers), numbers_of(best, None)._replace(spread=_spread(rows, numbers)))


def _soft(off: Floats) -> Floats:
    """Residuals whose squares grow linearly where they are large (pseudo-Huber)."""
    return np.asarray(off * np.sqrt(2 / (np.sqrt(1 + off * off) + 1)))


def _with_spreads(rows: Sequence[FitRows], numbers: Mapping[str, PlanNumbers]) -> dict[str, PlanNumbers]:
    """The numbers of each model of GPU with its spread, at least half of that of all."""
    least = _spread(rows, numbers) / 2
    return {each.device: numbers[each.device]._replace(spread=max(least, _spread([each], numbers))) for each in rows}


def _spread(rows: Sequence[FitRows], numbers: Mapping[str, PlanNumbers]) -> float:
    """Half of the interval that holds four of five of the rows, in log time.

    Rows that numbers were fitted to are nearer than others will be: wider by the root of rows / (rows - numbers).
    """
    off = np.concatenate([np.log(assembled(it.terms, numbers[it.device]).step_ns / it.step_ns) for it in rows])
    fitted = sum(prior.between > 0 for prior in PRIORS.values()) * len(rows)
    wider = np.sqrt(len(off) / max(len(off) - fitted, len(off) / 4))
    return float(np.quantile(np.abs(off), SPREAD_QUANTILE) * wider)
