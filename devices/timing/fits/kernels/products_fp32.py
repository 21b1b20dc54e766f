"""Matrix products in float32 on the vector units (no TF32): a batch of them, or one with a bias.

    linear   (batch * m, k) by weights (n, k), plus a bias of n: one product
    bmm      (batch, m, k) by (batch, k, n)

The formula is that of tiles (`product_formula.py`), with the rate as a share of the datasheet's at the clock that the
device keeps under load (`sustained_clock`), which falls further while a kernel runs for long (`fade`). What alignment
changes is left to the surface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from .....graph.arrays import Floats, Numbers
from ....spec import DeviceSpec
from ..product_formula import Geometry, geometry, soft_maximum
from .kernel_rows import FitNumber
from .launched import LAUNCH, LaunchedRows

ITEM_BYTES = 4
WARM_NS = 3e6
"""kernels that take longer than about this let the clock fall further"""
WASTE_TILES = ((128, 128), (64, 64))
"""tiles whose last wave counts"""


class Fp32ProductRows(LaunchedRows):
    """Products in float32."""

    PART, WHAT = "products_fp32", "products in float32"
    FORMULA = "the soft maximum of arithmetic, k-loop and bytes, with the fastest tile"
    TEXTS: ClassVar[Mapping[str, Sequence[str]]] = {"op": ("linear", "bmm")}
    COUNTS = ("batch", "m", "n", "k")
    NUMBERS = (
        *LAUNCH,
        FitNumber("rate", "", 0.9, 0.2, 1.5),
        FitNumber("half_area", "", 800, 10, 20_000),
        FitNumber("start", "ns", 2000, 100, 50_000),
        FitNumber("step", "ns", 1000, 50, 40_000),
        FitNumber("bandwidth", "", 0.8, 0.1, 1.5),
        FitNumber("filling", "", 0.3, 0.02, 1.0),
        FitNumber("cached", "", 0.5, 0.02, 4.0),
        FitNumber("split", "ns", 3000, 200, 50_000),
        FitNumber("fade", "", 0.03, 0.002, 0.5),
    )
    SPREAD = 0.2

    @property
    def flops(self) -> Floats:
        """A multiplication and an addition for each of m, n and k."""
        return 2 * self.size("batch") * self.size("m") * self.size("n") * self.size("k")

    @property
    def bytes(self) -> Floats:
        """The three matrices, each once."""
        batch, m, n, k = (self.size(name) for name in self.COUNTS)
        shared = np.where(self.of_type("op", "linear"), k * n + n, batch * k * n)
        return ITEM_BYTES * (batch * m * k + shared + batch * m * n)

    def datasheet_ns(self, spec: DeviceSpec) -> Floats:
        """The longer of operations by peak rate and bytes by bandwidth."""
        rates = self.flops / spec.peak_flops_per_s["fp32"], self.bytes / spec.memory_bandwidth_bytes_per_s
        return 1e9 * np.maximum(*rates)

    @cached_property
    def _sizes(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """m, n, k and batch of the product that runs."""
        batch, m, n, k = (self.counts[name] for name in self.COUNTS)
        is_one = self.of_type("op", "linear")
        return np.where(is_one, batch * m, m), n, k, np.where(is_one, 1, batch)

    def _geometry(self, spec: DeviceSpec) -> Geometry:
        key = (spec.sm_count, spec.l2_bytes)
        if key not in self._geometries:
            self._geometries[key] = geometry(*self._sizes, ITEM_BYTES, spec)
        return self._geometries[key]

    @cached_property
    def _geometries(self) -> dict[tuple[int, int], Geometry]:
        return {}

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """The soft maximum of arithmetic, k-loop and bytes, with the fastest tile."""
        _, _, rate, half_area, start, step, bandwidth, filling, cached, split, fade = numbers
        g, sms = self._geometry(spec), max(spec.sm_count, 1)
        peak = rate * spec.sustained_flops_per_s("fp32")
        arithmetic = g.waves * g.cta_flops * (g.area + half_area) / g.area * (1e9 * sms / peak)
        loop = g.waves * (start + g.steps * step)
        speed = bandwidth * spec.memory_bandwidth_bytes_per_s * np.where(g.in_l2, 1 + cached, 1.0)
        moved = 1e9 * np.maximum(g.moved, g.cta_bytes * max(1.0, filling * sms)) / speed
        times = soft_maximum(arithmetic, loop, moved) + np.where(g.is_split, split, 0.0)
        fastest = times.min(axis=0)
        return np.asarray(fastest * (1 + fastest / WARM_NS) ** fade, dtype=np.float64)

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Sizes, idle SMs, alignment."""
        m, n, k, batch = (size.astype(np.float64) for size in self._sizes)
        columns = {f"log2 {name}": np.log2(size) for name, size in (("m", m), ("n", n), ("k", k), ("batch", batch))}
        columns["log2 operations"] = np.log2(self.flops)
        for rows, cols in WASTE_TILES:
            waves = batch * np.ceil(m / rows) * np.ceil(n / cols) / max(spec.sm_count, 1)
            columns[f"idle {rows}x{cols}"] = np.minimum(np.log2(np.ceil(waves) / waves), 3.0)
        for name, size in (("n", n), ("k", k)):
            columns[f"aligned {name}"] = np.asarray((size % 2 == 0) * 1.0 + (size % 4 == 0))
        return columns
