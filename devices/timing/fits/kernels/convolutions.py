"""Convolutions of float32 images: the fastest of the algorithms that cuDNN has, as its search would find it.

    Convolutions({"pass": ["forward"]}, {"images": [64], "rows": [14], "columns": [14], "channels": [256], ...})
    .times_ns(numbers, V100)        by algorithm: 0.41 ms by Winograd, 0.62 as an implicit product, ...
    .formula_ns(numbers, V100)      0.41 ms

Each algorithm has a formula (`convolution_algorithms.py`) of shares that are fitted for each GPU; the least time
decides, so nothing that was measured has to be known of the one that is asked about. The measured rows are single calls
on an idle stream, which find the GPU at the low clock between calls: `idle` is what a call of a GPU of 10 TFLOP/s loses
by that, less on a faster one, and no part of a step that keeps the GPU busy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from .....graph.arrays import Floats
from ....spec import DeviceSpec
from .convolution_algorithms import FUSED_NEEDS, ConvolutionShares, ConvolutionSizes, KernelRates, times_ns
from .kernel_rows import FitNumber, KernelRows

FORWARD, TO_INPUT, TO_FILTER = "forward", "to_input", "to_filter"
PASSES = (FORWARD, TO_INPUT, TO_FILTER)
IDLE_RATE = 10e12
"""operations/s of the GPU that `idle` is of; as the root of the rate between a host, which is the same for all, and
work at a low clock, which is shorter on a fast GPU"""

KEPLER_RATE = 0.8
"""of the share that fits of later generations say: a Kepler's 192 lanes need instructions in pairs, and its products
reach 73 % of the peak (K20X: 2.90 of 3.95 TFLOP/s, NVIDIA's datasheet, recalled), theirs 89 to 93 %"""


class Convolutions(KernelRows):
    """Passes over convolutions. `rows` and `columns` are those of the output, `channels` those of the input."""

    PART, WHAT = "convolutions", "float32 convolutions"
    TEXTS: ClassVar[Mapping[str, Sequence[str]]] = {"pass": PASSES}
    COUNTS = ("images", "rows", "columns", "channels", "filters", "tall", "broad", "stride", "groups")
    NUMBERS = (
        FitNumber("idle", "ns", 150_000, 5_000, 600_000),
        FitNumber("fused", "", 0.75, 0.2, 1.2),
        FitNumber("winograd", "", 0.8, 0.2, 1.3),
        FitNumber("implicit", "", 0.9, 0.2, 1.3),
        FitNumber("explicit", "", 0.25, 0.1, 0.35),
        FitNumber("fft", "", 0.6, 0.2, 1.3),
        FitNumber("bandwidth", "", 0.6, 0.15, 1),
        FitNumber("filters", "", 0.3, 0.02, 1),
        FitNumber("waves", "", 0.5, 0.01, 1),
    )
    SPREAD = 0.2
    DECAY = 5.0
    HAS_RELATIVE_ERRORS = True
    NUMBER_ROWS = 400
    LAUNCH_SPREAD = 0.4

    @property
    def groups(self) -> tuple[str, ...]:
        """One: all passes are of the same arithmetic."""
        return ("fp32",) * len(self)

    def sizes(self) -> ConvolutionSizes:
        """The rows as the pixels that are gone over, and what is summed for each."""
        is_back, is_sum = self.of_type("pass", TO_INPUT), self.of_type("pass", TO_FILTER)
        stride, groups = self.size("stride"), self.size("groups")
        out, into = self.size("rows") * self.size("columns"), self.size("rows") * self.size("columns") * stride**2
        channels, filters = self.size("channels") / groups, self.size("filters") / groups
        deep, points = np.where(is_back, filters, channels), self.size("tall") * self.size("broad")
        pixels = self.size("images") * out
        depth = np.where(is_sum, pixels, deep * points / np.where(is_back, np.minimum(stride**2, points), 1.0))
        return ConvolutionSizes(
            self.size("images"),
            self.size("rows") * np.where(is_back, stride, 1.0),
            self.size("columns") * np.where(is_back, stride, 1.0),
            deep,
            np.where(is_back, channels, filters),
            self.size("tall"),
            self.size("broad"),
            depth,
            np.where(is_back, out, into),
            groups,
            stride == 1,
            is_sum,
        )

    @property
    def flops(self) -> Floats:
        """Of the convolution as it is defined, whatever the algorithm."""
        sizes = self.size("images") * self.size("rows") * self.size("columns") * self.size("tall") * self.size("broad")
        return np.asarray(2 * sizes * self.size("channels") / self.size("groups") * self.size("filters"))

    @property
    def bytes(self) -> Floats:
        """Both images and the filters."""
        sizes = self.sizes()
        return sizes.image_bytes + sizes.filter_bytes

    def datasheet_ns(self, spec: DeviceSpec) -> Floats:
        """The longer of operations and bytes."""
        arithmetic_ns = self.flops * 1e9 / spec.peak_flops_per_s["fp32"]
        return np.maximum(arithmetic_ns, self.bytes * 1e9 / spec.memory_bandwidth_bytes_per_s)

    def times_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """A row by algorithm, a column by convolution; infinite where it does not apply."""
        rate = spec.peak_flops_per_s["fp32"] / 1e9 * (KEPLER_RATE if is_before_maxwell(spec) else 1.0)
        machine = KernelRates(rate, spec.memory_bandwidth_bytes_per_s / 1e9, max(1, spec.sm_count))
        return times_ns(self.sizes(), ConvolutionShares(*numbers[1:]), machine, not is_before_maxwell(spec))

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """By the fastest algorithm."""
        return np.asarray(self.times_ns(numbers, spec).min(axis=0), dtype=np.float64)

    def timed_ns(self, kernel_ns: Floats, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """With what a call on an idle GPU loses."""
        return kernel_ns + idle_ns(numbers, spec)

    def shown_ns(self, time_ns: Floats, formula_ns: Floats, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """The kernels' part of it; NaN where they take less than is lost, which varies by more than they take."""
        idle = idle_ns(numbers, spec)
        return np.where(formula_ns < idle, np.nan, time_ns * formula_ns / (formula_ns + idle))

    def launch_share(self, kernel_ns: Floats, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Of what is lost."""
        idle = idle_ns(numbers, spec)
        return np.asarray(idle / (idle + kernel_ns), dtype=np.float64)

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """ConvolutionSizes, and how much of Winograd's tiles lies outside of the image."""
        return {
            **{f"log2 {name}": np.log2(self.size(name)) for name in ("images", "channels", "filters")},
            "log2 pixels": np.log2(self.size("rows") * self.size("columns")) / 2,
        }


def idle_ns(numbers: Sequence[float], spec: DeviceSpec) -> float:
    """What one call on an idle GPU loses; `numbers` are those of `Convolutions`."""
    return float(numbers[0] * np.sqrt(IDLE_RATE / spec.peak_flops_per_s["fp32"]))


def is_before_maxwell(spec: DeviceSpec) -> bool:
    """Whether the GPU is of a generation without fused Winograd kernels; one that nobody stated is taken for new."""
    return 0 < spec.compute_capability < FUSED_NEEDS
