"""A family of kernels for tests: copies of rows x columns bytes, whose time is floor + bytes / bandwidth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from attrs import evolve

from partita.devices.catalog import device_spec
from partita.devices.spec import DeviceSpec
from partita.devices.timing.fits.kernels.kernel_rows import FitNumber, KernelRows
from partita.graph.arrays import Floats


class Copies(KernelRows):
    """Copies in one of two types."""

    PART, WHAT = "copies", "copies"
    TEXTS: ClassVar[Mapping[str, Sequence[str]]] = {"dtype": ("wide", "narrow")}
    COUNTS = ("rows", "columns")
    NUMBERS = (FitNumber("floor", "ns", 3000, 100, 100_000), FitNumber("bandwidth", "", 0.7, 0.01, 2))

    @property
    def flops(self) -> Floats:
        """None."""
        return np.zeros(len(self))

    @property
    def bytes(self) -> Floats:
        """Each element is read and written."""
        width = np.where(self.of_type("dtype", "wide"), 8.0, 2.0)
        return np.asarray(2 * width * self.size("rows") * self.size("columns"))

    def datasheet_ns(self, spec: DeviceSpec) -> Floats:
        """The bytes by the bandwidth."""
        return self.bytes * 1e9 / spec.memory_bandwidth_bytes_per_s

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """The floor and the bytes."""
        floor, share = numbers
        return floor + self.datasheet_ns(spec) / share

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Both sizes."""
        return {f"log2 {name}": np.log2(self.size(name)) for name in self.COUNTS}


def drawn_copies(count: int, seed: int = 0) -> Copies:
    """Copies of many sizes, in both types."""
    draw = np.random.default_rng(seed)
    sizes = {name: np.exp2(draw.uniform(4, 13, count)).astype(np.int64) for name in Copies.COUNTS}
    return Copies({"dtype": [("wide", "narrow")[i % 2] for i in range(count)]}, sizes)


def true_ns(rows: Copies, spec: DeviceSpec, seed: int = 0) -> Floats:
    """Times of the formula with 2.5 us and 80 %, slower where there are few columns, with 3 % of noise."""
    off = 0.3 / (1 + rows.size("columns") / 64)
    noise = np.random.default_rng(seed).normal(0, 0.03, len(rows))
    return np.asarray(rows.formula_ns((2500, 0.8), spec) * np.exp(off + noise), dtype=np.float64)


def gpus(count: int = 4) -> dict[str, DeviceSpec]:
    """Devices of unequal bandwidth, by name."""
    h100 = device_spec("H100-SXM")
    return {
        f"gpu{i}": evolve(h100, name=f"gpu{i}", memory_bandwidth_bytes_per_s=(i + 2) * 10**12) for i in range(count)
    }
