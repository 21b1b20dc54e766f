"""Times of kernels on a device that nobody measured, from the models of those that somebody did.

    T4 without a fit, donors P4 and V100     each donor's numbers are shares of its datasheet: its formula on the T4's,
                                             times its surface; the mean in log time, nearer datasheets counting more

The interval has what the donors differ by, what each does not know, and at least what leaving each measured device out
in turn has shown (`KernelRows.spread_at`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....graph.arrays import Floats
from ....spec import DeviceSpec
from ..layers import with_interval
from ..prediction import Prediction
from ..products import bf16_peak
from .kernel_model import KernelModel, R, at_least


def distance(one: DeviceSpec, other: DeviceSpec) -> float:
    """How far two datasheets are apart: the norm of the logs of their ratios of peak rates and bandwidth."""
    ratios = (
        bf16_peak(one) / bf16_peak(other),
        one.peak_flops_per_s["fp32"] / other.peak_flops_per_s["fp32"],
        one.memory_bandwidth_bytes_per_s / other.memory_bandwidth_bytes_per_s,
    )
    return float(np.linalg.norm(np.log(ratios)))


def weights_of(donors: Sequence[KernelModel[Any]], spec: DeviceSpec) -> Floats:  # Any: rows of every family
    """How much each donor counts, 1 in all."""
    away = np.array([distance(spec, donor.spec) for donor in donors])
    weights: Floats = np.exp(-(away - away.min()) / donors[0].family.DECAY)
    return np.asarray(weights / weights.sum())


def transferred(donors: Sequence[KernelModel[R]], rows: R, spec: DeviceSpec) -> Prediction:
    """What is measured of the rows on `spec`, by the models of other devices, each of which `has` the rows."""
    weights, kernels, half = _by_donor(donors, rows, spec)
    middle, low, high = (
        np.log([d.timed_ns(rows, row * np.exp(sign * half), spec) for d, row in zip(donors, kernels, strict=True)])
        for sign in (0, -1, 1)
    )
    log_ns: Floats = weights @ middle
    apart = np.sqrt(weights @ (middle - log_ns) ** 2)
    shares = [donor.launch_shares(rows, row, spec) for donor, row in zip(donors, kernels, strict=True)]
    apart = np.hypot(apart, (weights @ np.array(shares)) * type(rows).LAUNCH_SPREAD)
    down, up = np.hypot(log_ns - weights @ low, apart), np.hypot(weights @ high - log_ns, apart)
    return Prediction(np.exp(log_ns), np.exp(log_ns - down), np.exp(log_ns + up), "transferred")


def transferred_kernels(donors: Sequence[KernelModel[R]], rows: R, spec: DeviceSpec) -> Prediction:
    """Times of the kernels alone on `spec`, at least its floor."""
    weights, kernels, half = _by_donor(donors, rows, spec)
    log_ns: Floats = weights @ np.log(kernels)
    apart = np.sqrt(weights @ (np.log(kernels) - log_ns) ** 2)
    said = with_interval(np.exp(log_ns), np.hypot(half, apart), "transferred")
    return at_least(said, type(rows).floor_ns(spec))


def _by_donor(donors: Sequence[KernelModel[R]], rows: R, spec: DeviceSpec) -> tuple[Floats, Floats, Floats]:
    """The weight of each donor, its kernels on `spec` by row, and half of the interval but for what they differ by."""
    weights, nearest = weights_of(donors, spec), min(distance(spec, donor.spec) for donor in donors)
    kernels, halves = zip(*(donor.kernels(rows, spec) for donor in donors), strict=True)
    half: Floats = np.sqrt(weights @ np.array(halves) ** 2 + type(rows).spread_at(nearest) ** 2)
    return weights, np.array(kernels), half
