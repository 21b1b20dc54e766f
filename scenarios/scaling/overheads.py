"""What a simulated step of several replicas lacks, fitted to measured ones: stragglers, and transfers in the open.

    step = simulated * (1 + spread * slowest(n)) + exposed * (alone(n) - alone(1))

`simulated` is the step as the graph allows it: every transfer runs beside the kernels that do not need it. Real steps
of n replicas take longer, for two reasons that shapes do not show:

- They end with the slowest replica. If the times of replicas scatter by `spread` (a share), the slowest of n is
  expected `slowest(n)` deviations above the mean: 0 for one, 0.59 for two, 1.43 for eight, 2.35 for 64 (Blom,
  Statistical Estimates and Transformed Beta-Variables, 1958). Each model of GPU has a spread. That of a K80, of which
  two share the power of a board, holds what they lose to each other.
- TensorFlow of 2017 does not hide all transfers. `alone(n)` is the time of the same step when kernels of GPUs take no
  time, and `exposed` the share that a step waits for: one inside a host, one between hosts. One GPU's share is in its
  calibration already.

Least squares of relative errors with numbers of at least 0, and a weak prior for what no row tells of: 3 +- 3 %, and
half +- half. What the rows leave open of a number widens the interval of a step that depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ...graph.arrays import Floats

PRIOR_SPREAD = 0.03
PRIOR_EXPOSED = 0.5
NOISE = 0.02
"""relative, of one measured step: runs of the same setting differ by so much"""
LEAST_DEVIATION = 0.02
_INSIDE, _BETWEEN = "inside a host", "between hosts"


class ReplicatedStep(NamedTuple):
    """A simulated step: seconds, and those of its transfers beyond one replica's, when kernels take no time."""

    gpu: str
    replicas: int
    hosts: int
    simulated_s: float
    transfers_s: float

    def terms(self) -> dict[str, float]:
        """Seconds by the number that they are multiplied with."""
        return {
            self.gpu: self.simulated_s * slowest_of(self.replicas),
            _BETWEEN if self.hosts > 1 else _INSIDE: self.transfers_s,
        }


class FittedOverhead(NamedTuple):
    """A spread or an exposed share, and the deviation of what else it might be."""

    value: float
    deviation: float


class Overheads(NamedTuple):
    """The fitted numbers by GPU and by where transfers run, and the relative deviation of the steps fitted to."""

    numbers: Mapping[str, FittedOverhead]
    deviation: float

    def step_s(self, step: ReplicatedStep) -> float:
        """Seconds that the step takes."""
        return step.simulated_s + sum(self._number(name).value * seconds for name, seconds in step.terms().items())

    def deviation_of(self, step: ReplicatedStep) -> float:
        """How sure that is, relative: the scatter of measured steps, and of each number that the step depends on."""
        total_s = self.step_s(step)
        shares = [self._number(name).deviation * seconds / total_s for name, seconds in step.terms().items()]
        return hypot(self.deviation, *shares)

    def _number(self, name: str) -> FittedOverhead:
        return self.numbers.get(name, FittedOverhead(_prior(name), _prior(name)))


def slowest_of(replicas: int) -> float:
    """How many deviations the slowest of normally distributed times is expected above the mean."""
    return NormalDist().inv_cdf((replicas - 0.375) / (replicas + 0.25))


def fit_overheads(steps: Sequence[ReplicatedStep], measured_s: Sequence[float]) -> Overheads:
    """The numbers that come nearest to measured steps; the priors without any."""
    names = sorted({name for step in steps for name in step.terms()})
    if not names:
        return Overheads({}, LEAST_DEVIATION * 2)
    measured = np.array(measured_s)
    terms = np.array([[step.terms().get(name, 0.0) for name in names] for step in steps]) / measured[:, None]
    missing = 1 - np.array([step.simulated_s for step in steps]) / measured
    priors = np.array([_prior(name) for name in names])
    rows = np.vstack([terms / NOISE, np.diag(1 / priors)])  # a prior is as wide as it is large
    numbers = _not_negative(rows, np.concatenate([missing / NOISE, np.ones(len(names))]))
    deviation = float(np.sqrt(np.mean((terms @ numbers - missing) ** 2)))
    unsure = np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
    fitted = {name: FittedOverhead(*it) for name, *it in zip(names, numbers.tolist(), unsure.tolist(), strict=True)}
    return Overheads(fitted, max(deviation, LEAST_DEVIATION))


def _prior(name: str) -> float:
    return PRIOR_EXPOSED if name in (_INSIDE, _BETWEEN) else PRIOR_SPREAD


def _not_negative(rows: Floats, wanted: Floats) -> Floats:
    """The numbers of at least 0 whose sums over the rows come nearest to what is wanted."""
    from scipy.optimize import nnls  # late: predicting does not need it

    numbers: Floats = nnls(rows, wanted)[0]
    return numbers
