"""Times of kernels on a device that nobody measured, from the models of those that somebody did.

    T4 without a fit, donors P4 and V100     each donor's numbers are shares of its datasheet: its formula on the T4's,
                                             times its surface; the mean in log time, nearer datasheets counting more

The interval has what the donors differ by, what each does not know, and at least what leaving each measured device out
in turn has shown (`KernelRows.spread_at`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....graph.arrays import Floats
from ....spec import DeviceSpec
from ..layers import with_interval
from ..prediction import Prediction
from ..products import bf16_peak
from .kernel_model import KernelModel, R


def distance(one: DeviceSpec, other: DeviceSpec) -> float:
    """How far two datasheets are apart: the norm of the logs of their ratios of peak rates and bandwidth."""
    ratios = (
        bf16_peak(one) / bf16_peak(other),
        one.peak_flops_per_s["fp32"] / other.peak_flops_per_s["fp32"],
        one.memory_bandwidth_bytes_per_s / other.memory_bandwidth_bytes_per_s,
    )
    return float(np.linalg.norm(np.log(ratios)))


def transferred(donors: Sequence[KernelModel[R]], rows: R, spec: DeviceSpec) -> Prediction:
    """Times of the rows on `spec` by the models of other devices, each of which `has` the rows."""
    away = np.array([distance(spec, donor.spec) for donor in donors])
    weights = np.exp(-(away - away.min()) / type(rows).DECAY)
    weights /= weights.sum()
    logs, halves = [], []
    for donor in donors:
        formula_ns, mean, half = donor.parts(rows, spec)
        logs.append(np.log(formula_ns) + mean)
        halves.append(half)
    log_ns: Floats = weights @ np.array(logs)
    apart = weights @ (np.array(logs) - log_ns) ** 2
    half = np.sqrt(weights @ np.array(halves) ** 2 + apart + type(rows).spread_at(float(away.min())) ** 2)
    return with_interval(np.exp(log_ns), half, "transferred")
