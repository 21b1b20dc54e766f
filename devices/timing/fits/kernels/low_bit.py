"""Products below 16 bits by their tiles, with the kernel that quantises a 16-bit input before them.

    1 x 4096 x 4096, fp8, H100-SXM      floor 12.2 us + soft maximum(arithmetic, k-loop, bytes) + quantised bytes

The product is that of `product_formula`, with input, weights and result of unequal width. What differs:

    split       the time of the second kernel of a split of k is a number of its own: kernels that scale by blocks of k
                do not split, and a long k with few tiles then takes its loop
    cache       a server's weights come from memory. The measurements replay one product: weights smaller than the L2
                are used in turn from 5 copies, or from as many as fill the L2. Where all copies fit they are read from
                it, which the number `L2` says; where they do not, memory speaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .....graph.arrays import Floats
from ....spec import DeviceSpec
from .element_types import ELEMENT_TYPES, RESULT_BYTES, rates_of
from .kernel_rows import FitNumber, KernelRows

DTYPES = ("fp8", "fp8_block", "nvfp4", "int8", "int8_weights", "int4_weights")
TILES = ((256, 128), (128, 256), (128, 128), (64, 128), (128, 64), (64, 64), (16, 128), (16, 64))
SPLITS = (1, 2, 4, 8, 16)
STEP_BYTES = 128
"""bytes of a row of weights that a block of threads reads in one turn of its loop"""
COPIES = 5
FITS_L2 = 1.06
"""share of the stated L2 up to which copies of weights are read from it: the stated sizes are rounded"""
WASTE_TILES = ((256, 128), (128, 128), (64, 64))


class _Geometry(NamedTuple):
    """By option of tile and split (rows) and product (columns), what no number changes."""

    waves: Floats
    cta_flops: Floats
    steps: Floats
    moved: Floats
    cta_bytes: Floats
    area: Floats
    is_split: Floats
    in_l2: NDArray[np.bool_]


class LowBitProducts(KernelRows):
    """Products of m x k inputs by k x n weights."""

    PART, WHAT = "low_bit_products", "products below 16 bits"
    FORMULA = (
        "floor + the soft maximum of arithmetic, k-loop and bytes, with the fastest tile and split + quantised bytes"
    )
    TEXTS: ClassVar[Mapping[str, Sequence[str]]] = {"dtype": DTYPES}
    COUNTS = ("m", "n", "k")
    NUMBERS = (
        FitNumber("floor", "ns", 3000, 200, 50_000),
        FitNumber("rate", "", 0.7, 0.05, 1.6),
        FitNumber("half_area", "", 1500, 1, 30_000),
        FitNumber("start", "ns", 500, 1, 20_000),
        FitNumber("step", "ns", 40, 0.5, 2000),
        FitNumber("bandwidth", "", 0.8, 0.1, 1.5),
        FitNumber("filling", "", 0.3, 0.02, 2),
        FitNumber("l2", "", 2, 1, 8),
        FitNumber("quantising", "", 0.5, 0.02, 3),
        FitNumber("split", "ns", 2000, 100, 1e6),
    )
    SPREAD, NEAR, DECAY = 0.6, 0.8, 0.4
    KEPT_ROWS = 200

    def _width(self, field: str) -> Floats:
        """A field of the type of each row."""
        return self.once(
            field, lambda: np.array([float(getattr(ELEMENT_TYPES[dtype], field)) for dtype in self.texts["dtype"]])
        )

    @property
    def flops(self) -> Floats:
        """Operations of the product."""
        return 2 * self.size("m") * self.size("n") * self.size("k")

    @property
    def weight_bytes(self) -> Floats:
        """Bytes of the weights with their scales."""
        return self.size("n") * self.size("k") * self._width("weight_bytes")

    @property
    def bytes(self) -> Floats:
        """Of input, weights and result, as the product reads and writes them."""
        inputs = self.size("m") * self.size("k") * self._width("input_bytes")
        return inputs + self.weight_bytes + RESULT_BYTES * self.size("m") * self.size("n")

    @property
    def quantised_bytes(self) -> Floats:
        """Of the 16-bit input and what becomes of it, where the kernel quantises."""
        return self._width("quantises") * self.size("m") * self.size("k") * (2 + self._width("input_bytes"))

    def copies(self, spec: DeviceSpec) -> Floats:
        """The bytes of all copies of the weights that a measurement uses in turn, as a share of the L2."""
        weights, l2_bytes = self.weight_bytes, max(1, spec.l2_bytes)  # unknown: nothing fits
        shares: Floats = weights * np.minimum(COPIES, np.ceil(l2_bytes / weights)) / l2_bytes
        return shares

    def rate(self, spec: DeviceSpec) -> Floats:
        """Operations/s of the units of each row."""
        return rates_of(spec, self.texts["dtype"])

    def datasheet_ns(self, spec: DeviceSpec) -> Floats:
        """The longer of operations by peak rate and bytes by bandwidth."""
        moving: Floats = self.bytes / spec.memory_bandwidth_bytes_per_s
        return 1e9 * np.maximum(self.flops / self.rate(spec), moving)

    def _geometry(self, spec: DeviceSpec) -> _Geometry:
        options = np.array([(*tile, split) for tile in TILES for split in SPLITS], dtype=np.float64)
        rows, columns, split = options.T[:, :, None]
        m, n, k = (self.size(name)[None] for name in ("m", "n", "k"))
        inputs, weights = self._width("input_bytes")[None], self._width("weight_bytes")[None]
        steps = np.ceil(k * weights / (split * STEP_BYTES))
        ctas = np.ceil(m / rows) * np.ceil(n / columns) * split
        return _Geometry(
            waves=np.ceil(ctas / max(1, spec.sm_count)),
            cta_flops=2 * rows * columns * STEP_BYTES / weights * steps,
            steps=steps,
            moved=self.bytes[None] + np.where(split > 1, 2 * 4 * split * m * n, 0.0),  # parts in float32, both ways
            cta_bytes=(np.minimum(m, rows) * inputs + np.minimum(n, columns) * weights) * k / split,
            area=rows * columns,
            is_split=np.asarray(split > 1, dtype=np.float64),
            in_l2=self.copies(spec) <= FITS_L2,
        )

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Floor, the fastest tile and split, and the quantised bytes."""
        floor_ns, rate, half_area, start_ns, step_ns, bandwidth, filling, l2, quantising, split_ns = numbers
        g = self.once(("geometry", spec.name), lambda: self._geometry(spec))
        memory = spec.memory_bandwidth_bytes_per_s / 1e9
        per_cta_ns = 1e9 * spec.sm_count / (rate * self.once(("rate", spec.name), lambda: self.rate(spec)))
        arithmetic = g.waves * g.cta_flops * (1 + half_area / g.area) * per_cta_ns
        loop = g.waves * (start_ns + g.steps * step_ns)
        speed = memory * bandwidth * np.where(g.in_l2, l2, 1.0)
        moved = np.maximum(g.moved, g.cta_bytes * max(1.0, filling * spec.sm_count)) / speed
        times = soft_maximum_4(arithmetic, loop, moved) + split_ns * g.is_split
        return np.asarray(floor_ns + times.min(axis=0) + self.quantised_bytes / (memory * quantising))

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Sizes, idle SMs of the last wave, how much of the L2 weights and their copies take, odd m."""
        m, n = self.size("m"), self.size("n")
        columns = {f"log2_{name}": np.log2(self.size(name)) for name in self.COUNTS}
        for rows, across in WASTE_TILES:
            waves = np.ceil(m / rows) * np.ceil(n / across) / max(1, spec.sm_count)
            columns[f"idle_{rows}x{across}"] = np.minimum(np.log2(np.ceil(waves) / waves), 3.0)
        l2_bytes = max(1, spec.l2_bytes)
        columns["copies"] = np.clip(np.log2(np.maximum(self.copies(spec), 2**-9)), -1.0, 1.0)
        columns["weights"] = np.clip(np.log2(self.weight_bytes / l2_bytes), -3.0, 2.0)
        columns["odd_m"] = np.asarray(self.counts["m"] % 2, dtype=np.float64)
        return columns


def soft_maximum_4(*terms: Floats) -> Floats:
    """(a^4 + b^4 + ...)^(1/4), by products and roots: a fit asks for it some thousand times."""
    total: Floats = np.zeros(np.broadcast_shapes(*(term.shape for term in terms)))
    for term in terms:
        square = term * term
        total += square * square
    return np.asarray(np.sqrt(np.sqrt(total)))
