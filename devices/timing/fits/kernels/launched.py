"""Families whose kernels were timed one call at a time on an idle stream: the host's launch is in what was measured.

    host 26 us, gap 54 %         measured        the kernel
    a kernel of 3 us             26 us           not shown: at most 12 us
    a kernel of 40 us            54 us           40 us

An event is recorded, the host launches one kernel (which takes it `host`), the kernel begins after the share `gap` of
that, and a second event is recorded after it: the longer of host, and gap and kernel is measured. Both belong to the
framework and its machine. A step that keeps the GPU busy has neither, so the cost of an op is the kernel alone, and at
least the floor of kernels: `kernel_floor` of the device, or `ASSUMED_FLOOR_NS`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....graph.arrays import Floats
from ....spec import DeviceSpec
from .kernel_rows import FitNumber, KernelRows

LAUNCH = (FitNumber("host", "ns", 35_000, 5_000, 200_000), FitNumber("gap", "", 0.54, 0.3, 0.8))
"""the first numbers of each family of this kind"""
ASSUMED_FLOOR_NS = 2500
"""replays of CUDA graphs of the smallest products take 2 to 3 us on A100 to B200 (aiconfigurator's `gemm`); the same is
assumed of other GPUs"""
SHOWN_BEYOND = 1.06
"""times longer than the host's by which a kernel is seen behind the launch: launches vary by some percent"""


class LaunchedRows(KernelRows):
    """Rows of one call on an idle stream; `NUMBERS` begin with `LAUNCH`."""

    LAUNCH_SPREAD = 0.2

    def timed_ns(self, kernel_ns: Floats, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """The longer of host, and gap and kernel."""
        host, gap = numbers[:2]
        return np.asarray(np.maximum(host, gap * host + kernel_ns), dtype=np.float64)

    def shown_ns(self, time_ns: Floats, formula_ns: Floats, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Without the gap; NaN where the host hides the kernel, and the formula says so too."""
        host, gap = numbers[0], numbers[0] * numbers[1]
        is_hidden = np.maximum(time_ns, gap + formula_ns) < SHOWN_BEYOND * host
        return np.where(is_hidden, np.nan, np.maximum(time_ns - gap, max(0.3 * (host - gap), 500.0)))

    @classmethod
    def floor_ns(cls, spec: DeviceSpec) -> float:
        """That of the device, or what is assumed."""
        return float(spec.kernel_floor_ns or ASSUMED_FLOOR_NS)
