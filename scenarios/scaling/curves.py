"""Rows of measurements as curves: rows that differ in the number of GPUs, one of which is that of one GPU.

    DGX-1 P100, synthetic, ResNet-50, 64 images     1 GPU: 0.292 s a step    8 GPUs: 0.295 s

What is simulated of a curve depends on what the fit has of it, and of others: `calibrations`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from typing import NamedTuple

import numpy as np

from ...devices.calibration.validation.rows import Indices, MeasuredRows
from ...devices.catalog.hosts import host_model
from ..workloads.image_training import NETWORKS
from .machines import HOSTS, MACHINES, place_of_parameters
from .steps import GPUS_PER_HOST, StepSetting

RATE = "images_per_s"


class ScalingCurve(NamedTuple):
    """The key columns of rows, but the number of GPUs."""

    platform: str
    variable_update: str
    data: str
    model: str
    batch_per_gpu: int

    def setting(self) -> StepSetting | None:
        """The step on one GPU; None where nobody knows the platform, the network or where parameters were."""
        place = place_of_parameters(self.platform, self.variable_update, self.model)
        if self.platform not in MACHINES or self.model not in NETWORKS or place is None:
            return None
        return StepSetting(MACHINES[self.platform], self.model, place, 1)

    def has(self, gpus: int) -> bool:
        """Whether the machines of the curve have so many GPUs."""
        setting = self.setting()
        return setting is not None and (gpus <= GPUS_PER_HOST or setting.parameters == HOSTS)

    def step_s(self, gpus: int, images_per_s: float) -> float:
        """Seconds of a step of that rate."""
        return self.batch_per_gpu * gpus / images_per_s

    def distance(self, other: ScalingCurve) -> tuple[bool, bool, bool, float]:
        """How unlike the kernels of another curve are, the most important difference first."""
        mine, theirs = MACHINES.get(self.platform), MACHINES.get(other.platform)
        return (
            self.model != other.model,
            mine != theirs,
            self.data != other.data,
            abs(log(self.batch_per_gpu / other.batch_per_gpu)),
        )


def rows_of_curves(rows: MeasuredRows) -> dict[ScalingCurve, Indices]:
    """The rows of each curve, curves in order of their first rows."""
    indices: dict[ScalingCurve, list[int]] = {}
    columns = (rows.keys[name].tolist() for name in ScalingCurve._fields)
    for row, key in enumerate(zip(*columns, strict=True)):
        indices.setdefault(ScalingCurve(*key), []).append(row)
    return {curve: np.array(of_curve) for curve, of_curve in indices.items()}


def one_gpu_rate(rows: MeasuredRows, indices: Iterable[int]) -> float | None:
    """Images/s of one GPU among rows of a curve, the mean of several; None without any."""
    rates = [rows.measured[RATE][row] for row in indices if rows.keys["gpus"][row] == 1]
    return float(np.mean(rates)) if rates else None


def nearest_curve(curve: ScalingCurve, others: Iterable[ScalingCurve]) -> ScalingCurve | None:
    """The curve among others, on the same model of GPU, whose kernels are most like those of this one."""
    setting = curve.setting()
    if setting is None:
        return None
    gpu = host_model(setting.machine).gpu
    known = [other for other in others if (its := other.setting()) and host_model(its.machine).gpu == gpu]
    return min(known, key=curve.distance, default=None)
