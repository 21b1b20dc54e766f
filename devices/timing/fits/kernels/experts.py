"""Expert layers of one GPU in a serving framework: gating, permutation and two or three grouped products.

    64 tokens, 4096 x 1536, 8 of 128 experts, tp 1, ep 4, balanced, bf16, H100-SXM
        weights of 32 active experts read once, twice a soft maximum(arithmetic, tiles, weights), tokens moved, floor

The load is that of the busiest GPU (`expert_load`). Each of two launches, up (with its gate) and down, takes the soft
maximum of

    arithmetic   rows padded to tiles of 16, 64 or 128, by the rate and the efficiency of such tiles
    tiles        waves * (start + turns of the loop * step)
    weights      of the active experts, by the bandwidth; what fits in the L2 is read from it where a layer is repeated

and the layer adds its tokens, permuted, written between the launches and gathered, by a bandwidth of their own, a time
for each token and each expert on the GPU, and the floor of all its kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from .....graph.arrays import Floats, Numbers
from ....spec import DeviceSpec
from .element_types import ELEMENT_TYPES, RESULT_BYTES, rates_of
from .expert_load import TILE_ROWS, busiest
from .kernel_rows import FitNumber, KernelRows
from .low_bit import STEP_BYTES, soft_maximum_4

DTYPES = ("bf16", "fp8", "fp8_block", "nvfp4", "w4a16_mxfp4", "w4a8_mxfp4_mxfp8")
KERNELS = ("default", "min_latency", "triton", "deepgemm")
"""the grouped products that a framework takes of itself (CUTLASS on most GPUs), and those it takes for some cases"""
TILE_COLUMNS = 128
L2_SHARE, L2_EDGE = 0.95, 6
"""share of the L2 that weights can take, and how sharply they no longer fit"""
SKEW_UNIT = 1000
"""the column `skew` is 1 + this times the exponent, so that balanced is 1"""


def skews(exponents: Sequence[float]) -> Numbers:
    """The column `skew` of exponents of power laws, 0 where the routing is balanced."""
    return np.array([1 + round(SKEW_UNIT * exponent) for exponent in exponents], dtype=np.int64)


class ExpertLayers(KernelRows):
    """Layers with `experts` of hidden x intermediate, `products` (3 if gated, else 2) each, cut by tp and ep."""

    PART, WHAT = "expert_layers", "expert layers"
    FORMULA = "floor + both launches, each the soft maximum of arithmetic, tiles and weights, + tokens and experts"
    TEXTS: ClassVar[Mapping[str, Sequence[str]]] = {"dtype": DTYPES, "kernel": KERNELS}
    COUNTS = ("tokens", "hidden", "intermediate", "experts", "top_k", "tp", "ep", "products", "skew")
    NUMBERS = (
        FitNumber("floor", "ns", 20_000, 1000, 300_000),
        FitNumber("rate", "", 0.6, 0.03, 1),
        FitNumber("half_rows", "", 30, 1, 2000),
        FitNumber("start", "ns", 1000, 1, 30_000),
        FitNumber("step", "ns", 30, 1, 300),
        FitNumber("bandwidth", "", 0.7, 0.05, 1.5),
        FitNumber("moving", "", 0.5, 0.02, 2),
        FitNumber("expert", "ns", 20, 0.5, 2000),
        FitNumber("token", "ns", 0.5, 0.01, 20),
        FitNumber("l2", "", 1.5, 1, 5),
    )
    SPREAD, NEAR, DECAY = 0.5, 0.8, 0.4

    @property
    def ranged(self) -> Mapping[str, Numbers]:
        """Splits and routing are told by the sizes that they leave."""
        return {name: self.counts[name] for name in ("tokens", "hidden", "intermediate", "experts")}

    @property
    def load(self) -> Floats:
        """By row of the table: rows, active experts, rows of the fullest expert, tiles by `TILE_ROWS`."""
        return self.once("load", self._load)

    def _load(self) -> Floats:
        names = ("tokens", "top_k", "experts", "ep", "skew")
        lines = zip(*(self.counts[name].tolist() for name in names), strict=True)
        loads = [busiest(*sizes, (skew - 1) / SKEW_UNIT) for *sizes, skew in lines]
        return np.array([(*load[:3], *load.tiles) for load in loads]).T

    def _width(self, field: str) -> Floats:
        return self.once(
            field, lambda: np.array([float(getattr(ELEMENT_TYPES[dtype], field)) for dtype in self.texts["dtype"]])
        )

    @property
    def inner(self) -> Floats:
        """The intermediate size on this GPU."""
        return self.size("intermediate") / self.size("tp")

    @property
    def flops(self) -> Floats:
        """Operations of the busiest GPU."""
        return np.asarray(2 * self.load[0] * self._elements)

    @property
    def weight_bytes(self) -> Floats:
        """Weights of the active experts."""
        return self.once("weights", lambda: self.load[1] * self._elements * self._width("weight_bytes"))

    @property
    def _elements(self) -> Floats:
        """Weights of one expert on this GPU."""
        return np.asarray(self.size("products") * self.size("hidden") * self.inner)

    @property
    def token_bytes(self) -> Floats:
        """Tokens read, permuted, read and written by both launches, and gathered."""
        return self.once("tokens", self._token_bytes)

    def _token_bytes(self) -> Floats:
        hidden, inner, inputs = self.size("hidden"), self.inner, self._width("input_bytes")
        outside = 2 * RESULT_BYTES * self.size("tokens") * hidden
        at_hidden = self.load[0] * hidden * (2 * inputs + 2 * RESULT_BYTES)
        at_inner = self.load[0] * inner * (2 * inputs + 2 * RESULT_BYTES * (self.size("products") - 1))
        return np.asarray(outside + at_hidden + at_inner)

    @property
    def bytes(self) -> Floats:
        """Weights and tokens."""
        return self.weight_bytes + self.token_bytes

    def datasheet_ns(self, spec: DeviceSpec) -> Floats:
        """The longer of operations by peak rate and bytes by bandwidth."""
        moving: Floats = self.bytes / spec.memory_bandwidth_bytes_per_s
        return 1e9 * np.maximum(self.flops / rates_of(spec, self.texts["dtype"]), moving)

    def _geometry(self, spec: DeviceSpec) -> tuple[Floats, Floats, Floats]:
        """By launch, tile and layer: waves, operations of the padded rows, and turns of a tile's loop."""
        hidden, inner, width = self.size("hidden"), self.inner, self._width("weight_bytes")
        launches = ((self.size("products") - 1) * inner, hidden), (hidden, inner)
        tiles, tile_rows = self.load[3:], np.array(TILE_ROWS, dtype=np.float64)[:, None]
        waves = [np.ceil(tiles * np.ceil(n / TILE_COLUMNS) / max(1, spec.sm_count)) for n, _ in launches]
        flops = [2 * tiles * tile_rows * n * k for n, k in launches]
        turns = [np.ceil(k * width / STEP_BYTES)[None] for _, k in launches]
        return np.stack(waves), np.stack(flops), np.stack(turns)

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Both launches with their fastest tile, tokens, experts and the floor."""
        floor_ns, rate, half_rows, start_ns, step_ns, bandwidth, moving, expert_ns, token_ns, l2 = numbers
        waves, flops, turns = self.once(("geometry", spec.name), lambda: self._geometry(spec))
        rates = self.once(("rate", spec.name), lambda: rates_of(spec, self.texts["dtype"]))
        memory, products = spec.memory_bandwidth_bytes_per_s / 1e9, self.size("products")
        tile_rows = np.array(TILE_ROWS, dtype=np.float64)[:, None]
        arithmetic = flops * (1e9 * (1 + half_rows / tile_rows)) / (rate * rates)
        in_l2 = self.once(("l2", spec.name), lambda: self._in_l2(spec))
        shares = np.stack([(products - 1) / products, 1 / products])[:, None]
        weights = shares * self.weight_bytes / (memory * bandwidth * (1 + (l2 - 1) * in_l2))
        launches = soft_maximum_4(arithmetic, waves * (start_ns + turns * step_ns), weights).min(axis=1).sum(axis=0)
        each = expert_ns * self.size("experts") / self.size("ep") + token_ns * self.size("tokens")
        return np.asarray(floor_ns + launches + self.token_bytes / (memory * moving) + each)

    def _in_l2(self, spec: DeviceSpec) -> Floats:
        """Near 1 where the weights fit in the L2, near 0 where they do not."""
        return np.asarray(1 / (1 + (self.weight_bytes / (L2_SHARE * max(1, spec.l2_bytes))) ** L2_EDGE))

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Sizes, the load of the busiest GPU, whether gated and balanced, the share of the L2 that weights take."""
        rows, active, most = self.load[0], np.maximum(self.load[1], 0.5), self.load[2]
        sizes = {
            **{name: self.size(name) for name in ("tokens", "hidden", "intermediate", "experts", "top_k")},
            "inner": self.inner,
            "local": self.size("experts") / self.size("ep"),
            "rows": np.maximum(rows, 0.5),
            "active": active,
            "rows_of_one": np.maximum(rows / active, 1.0),
            "most_rows": np.maximum(most, 1.0),
        }
        columns = {f"log2_{name}": np.log2(size) for name, size in sizes.items()}
        columns["products"] = self.size("products")
        columns["balanced"] = np.asarray(self.counts["skew"] == 1, dtype=np.float64)
        columns["weights"] = np.clip(np.log2(self.weight_bytes / max(1, spec.l2_bytes)), -2.0, 2.0)
        return columns
