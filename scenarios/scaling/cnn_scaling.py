"""The set `cnn_scaling_tf2017`: images/s of TensorFlow's benchmarks of 2017 on 1 to 64 GPUs, from simulated steps.

    rows to fit to     DGX-1 P100, ResNet-50, 64 images, 1 GPU: 219 images/s    kernels take 1.25 times the roofline
                       ... on 2, 4, 8 GPUs: 422, 852, 1734                      with others: overheads of replicas
    rows to predict    DGX-1 P100, ResNet-50, 64 images, 8 GPUs                 8 x 64 images / simulated step

The row of one GPU calibrates the kernels of a curve and is met exactly, so such rows are a part of their own. Where the
fit does not have it, one GPU is simulated with nothing fitted to any step (`UNFITTED`), and several take the factor of
the curve with the same model of GPU that is most like theirs. The null model `linear` multiplies the rate of one GPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...devices.calibration.validation.measured_set import (
    UNKNOWN,
    Fold,
    Job,
    MeasuredSet,
    PredictedBounds,
    RowPredictions,
)
from ...devices.calibration.validation.rows import COUNT, TEXT, Indices, MeasuredRows, read_csv
from .curves import RATE, ScalingCurve, nearest_curve, one_gpu_rate, rows_of_curves
from .overheads import NOISE, PRIOR_EXPOSED, Overheads, ReplicatedStep, fit_overheads
from .simulated import CurveRequest, SimulatedCurve, simulated_curves

ONE_GPU, SEVERAL = "one GPU", "several GPUs"
LINEAR = "linear"
UNFITTED = "simulated"
TRANSFER_DEVIATION = 0.35
"""of log time, where the factor of kernels is that of another curve, or where there is none"""
_KEYS = {"platform": TEXT, "variable_update": TEXT, "data": TEXT, "model": TEXT, "batch_per_gpu": COUNT, "gpus": COUNT}
_BOUND = 1.2816  # deviations on each side of which 80 % of a normal distribution lie


class _PredictedRate(NamedTuple):
    """A rate with how sure it is, in log rate, and where it comes from."""

    rate: float
    deviation: float
    provenance: str


def _read(paths: Sequence[Path], may_be_empty: bool) -> MeasuredRows:
    return read_csv(paths[0], _KEYS, [RATE], may_be_empty=may_be_empty)


def _jobs(fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[Job]:
    assert fit is not None
    return [Job(np.arange(len(test)), partial(_answer, fit, test))]


def _answer(fit: MeasuredRows, test: MeasuredRows) -> RowPredictions:
    """Simulates the curves of both, fits the overheads to those of the fit, and says the rates of the test."""
    known, asked = rows_of_curves(fit), rows_of_curves(test)
    rates = {curve: one_gpu_rate(fit, rows) for curve, rows in known.items()}
    simulated, donors = _simulated(fit, test, {curve: rate for curve, rate in rates.items() if rate is not None})
    overheads, unfitted = _fitted(fit, simulated), _unfitted(asked, rates, test)
    said = [_PredictedRate(np.nan, np.nan, UNKNOWN)] * len(test)
    linear = np.full(len(test), np.nan)
    for curve, indices in asked.items():
        for row in indices.tolist():
            gpus = int(test.keys["gpus"][row])
            linear[row] = (rates.get(curve) or np.nan) * gpus
            if gpus == 1 and curve in unfitted:
                said[row] = _PredictedRate(1 / unfitted[curve] * curve.batch_per_gpu, TRANSFER_DEVIATION, UNFITTED)
            elif curve in simulated and gpus in simulated[curve].steps:
                said[row] = _of_row(curve, simulated[curve].steps[gpus], overheads, donors.get(curve))
    rate, spread = np.array([it.rate for it in said]), np.array([it.deviation for it in said])
    bounds = PredictedBounds(rate, rate * np.exp(-_BOUND * spread), rate * np.exp(_BOUND * spread))
    return RowPredictions({RATE: bounds}, tuple(it.provenance for it in said), {LINEAR: {RATE: linear}})


def _unfitted(
    asked: Mapping[ScalingCurve, Indices], rates: Mapping[ScalingCurve, float | None], test: MeasuredRows
) -> dict[ScalingCurve, float]:
    """Seconds of a step on one GPU, by curve that the fit does not have it of, with nothing fitted to steps.

    As much of its transfers is waited for as is assumed of several GPUs before any row is known.
    """
    requests = {}
    for curve, indices in asked.items():
        setting = curve.setting()
        if rates.get(curve) is None and setting is not None and 1 in test.keys["gpus"][indices]:
            requests[curve] = CurveRequest(setting, curve.batch_per_gpu, (1,), None, 1.0)
    simulated = simulated_curves(requests)
    return {curve: done.steps[1].simulated_s + PRIOR_EXPOSED * done.alone_s for curve, done in simulated.items()}


def _simulated(
    fit: MeasuredRows, test: MeasuredRows, rates: Mapping[ScalingCurve, float]
) -> tuple[dict[ScalingCurve, SimulatedCurve], dict[ScalingCurve, ScalingCurve]]:
    """What is simulated of each curve, and whose factor a curve has that `rates` of one GPU lack."""
    counts: defaultdict[ScalingCurve, set[int]] = defaultdict(set)
    for rows in (fit, test):
        for curve, indices in rows_of_curves(rows).items():
            numbers = {n for n in rows.keys["gpus"][indices].tolist() if curve.has(n)}
            if rows is test or numbers - {1}:  # a rate of one GPU alone has nothing to fit overheads to
                counts[curve] |= numbers
    donors = {
        curve: donor
        for curve in counts
        if curve not in rates and (donor := nearest_curve(curve, list(rates))) is not None
    }
    steps = {curve: setting for curve in {**counts, **rates} if (setting := curve.setting()) is not None}
    wanted = [curve for curve in rates if curve in steps and (curve in counts or curve in donors.values())]

    def request(curve: ScalingCurve, one_gpu_s: float | None, factor: float = 1.0) -> CurveRequest:
        return CurveRequest(steps[curve], curve.batch_per_gpu, tuple(sorted(counts[curve])), one_gpu_s, factor)

    done = simulated_curves({curve: request(curve, curve.step_s(1, rates[curve])) for curve in wanted})
    others = {curve: request(curve, None, done[donor].factor) for curve, donor in donors.items()}
    return done | simulated_curves(others), donors


def _fitted(fit: MeasuredRows, simulated: Mapping[ScalingCurve, SimulatedCurve]) -> Overheads:
    """The overheads of steps on several GPUs in curves that have a rate of one."""
    steps, measured = [], []
    for curve, indices in rows_of_curves(fit).items():
        if one_gpu_rate(fit, indices) is None or curve not in simulated:
            continue
        for row in indices.tolist():
            gpus = int(fit.keys["gpus"][row])
            step = simulated[curve].steps.get(gpus)
            if step is not None and gpus > 1:
                steps.append(step)
                measured.append(curve.step_s(gpus, float(fit.measured[RATE][row])))
    return fit_overheads(steps, measured)


def _of_row(
    curve: ScalingCurve, step: ReplicatedStep, overheads: Overheads, donor: ScalingCurve | None
) -> _PredictedRate:
    rate = curve.batch_per_gpu * step.replicas / overheads.step_s(step)
    if donor is not None:
        return _PredictedRate(rate, TRANSFER_DEVIATION, f"simulated, kernels as of {donor.model} on {donor.platform}")
    if step.replicas == 1:
        return _PredictedRate(rate, NOISE, "calibration")
    return _PredictedRate(rate, overheads.deviation_of(step), "simulated, calibrated on one GPU")


def _parts(fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[str | None]:
    return [ONE_GPU if gpus == 1 else SEVERAL for gpus in test.keys["gpus"].tolist()]


def _folds(rows: MeasuredRows, count: int) -> Sequence[Fold]:
    """The rows of several GPUs, curve by curve, from the row of one GPU and from other curves; those of one GPU from
    rows of several, to which no kernel is fitted."""
    several, one = (np.flatnonzero(of) for of in (rows.keys["gpus"] > 1, rows.keys["gpus"] == 1))
    curves = [indices[rows.keys["gpus"][indices] > 1] for indices in rows_of_curves(rows).values()]
    curves = [indices for indices in curves if len(indices)]
    folds = [np.sort(np.concatenate(curves[k::count])) for k in range(min(count, len(curves)))]
    parts = [Fold(SEVERAL, np.setdiff1d(np.arange(len(rows)), test), test) for test in folds]
    return [*parts, Fold(ONE_GPU, several, one)] if len(one) else parts


CNN_SCALING = MeasuredSet(
    "cnn_scaling_tf2017",
    "cnn_scaling_tf2017.csv",
    (RATE,),
    _read,
    _jobs,
    _parts,
    _folds,
    by=("platform", "model"),
)
