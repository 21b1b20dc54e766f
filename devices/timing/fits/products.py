"""The time of matrix products on one model of device: a formula of tiles, times a surface of what it misses.

`Products` says what is asked, in columns. A `ProductModel` multiplies the formula of `product_formula.py` by the
exponential of a surface over the sizes (`surface.py`), which knows how far off the formula was at measured products.
Other element types and devices scale the formula's rate and bytes, without the surface: "transferred".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats, Numbers
from ...spec import DeviceSpec
from ..costs.source import Provenance
from .layers import WIDENING
from .prediction import Prediction
from .product_formula import ProductNumbers, ProductTerms, geometry, product_terms
from .product_surface import ProductSurface
from .product_table import EVERYWHERE, UNITS, ProductRanges, read_table, write_table

TRANSFERRED_SPREAD, TRANSFERRED_FACTOR = 0.35, 1.5
"""half of the 80 % interval of a transferred time in log time: at least, and by that of the formula"""
NEAREST = 5
"""rows of the surface that an explanation lists"""


def _column(values: NDArray[Any]) -> Numbers:  # Any: integers of every width are welcome
    return np.asarray(values, dtype=np.int64)


@frozen(eq=False)
class Products:
    """Matrix products of m x k by k x n matrices, `batch` of each together, one a row; InvalidArgumentError.

    `layout` is "TN", "NN" or "NT" where known, else "". `rate_ratio` is the peak rate of the element type by that of
    bf16. `is_transferred` says that the model was fitted for another element type or device.
    """

    m: Numbers = field(converter=_column)
    n: Numbers = field(converter=_column)
    k: Numbers = field(converter=_column)
    batch: Numbers = field(converter=_column)
    layout: tuple[str, ...] | None = None
    item_bytes: float = 2
    rate_ratio: float = 1.0
    is_transferred: bool = False

    def __attrs_post_init__(self) -> None:
        rows = len(self.m)
        for name in ("n", "k", "batch"):
            if len(getattr(self, name)) != rows:
                raise InvalidArgumentError(f"{name} has {len(getattr(self, name))} rows, m has {rows}; give one each")
        if self.layout is not None and len(self.layout) != rows:
            raise InvalidArgumentError(f"layout has {len(self.layout)} rows, m has {rows}; give one each")
        for name in ("m", "n", "k", "batch"):
            if rows and getattr(self, name).min() < 1:
                raise InvalidArgumentError(f"{name} = {getattr(self, name).min()} of a product must be at least 1")

    def __len__(self) -> int:
        return len(self.m)

    @property
    def flops(self) -> Floats:
        """Operations of each product, a multiply-add as two."""
        m, n, k = (a.astype(np.float64) for a in (self.m, self.n, self.k))
        return np.asarray(2.0 * self.batch * m * n * k, dtype=np.float64)

    @property
    def bytes(self) -> Floats:
        """Bytes of the three matrices of each product."""
        m, n, k = (a.astype(np.float64) for a in (self.m, self.n, self.k))
        return np.asarray(self.batch * (m * k + k * n + m * n) * self.item_bytes, dtype=np.float64)


def datasheet_ns(products: Products, spec: DeviceSpec) -> Floats:
    """The longer of operations by peak rate and bytes by bandwidth, by row: what a datasheet alone says."""
    peak = bf16_peak(spec) * products.rate_ratio
    return 1e9 * np.maximum(products.flops / peak, products.bytes / spec.memory_bandwidth_bytes_per_s)


def bf16_peak(spec: DeviceSpec) -> int:
    """The datasheet's rate for bf16 products; that of fp16, then of fp32, on a device without it."""
    rates = spec.peak_flops_per_s
    return rates.get("bf16") or rates.get("fp16") or rates["fp32"]


class NearRow(NamedTuple):
    """A row of the surface, and by what the formula is multiplied there."""

    m: int
    n: int
    k: int
    factor: float


class ProductExplanation(NamedTuple):
    """Where the time of one product comes from; times in ns."""

    tile: tuple[int, int]
    split_k: int
    waves: int
    arithmetic_ns: float
    loop_ns: float
    bytes_ns: float
    formula_ns: float
    """floor and soft maximum of the three terms"""
    residual_factor: float
    """of the surface; the predicted time is the formula's times this"""
    numbers: tuple[tuple[str, float, str], ...]
    """name, value and unit of what was fitted"""
    nearest: tuple[NearRow, ...]
    """rows of the surface, the nearest first"""
    is_outside_range: bool
    """whether a size lies outside those of the fit"""
    low_ns: float
    high_ns: float


@frozen(eq=False)
class ProductModel:
    """The fitted numbers of one device, and the surface of what its formula misses.

    `spread` is half of the 80 % interval of the formula alone, in log time. Outside `ranges` the surface fades with
    each doubling, and the interval widens. Without a surface (few rows) the formula speaks everywhere.
    """

    spec: DeviceSpec
    numbers: ProductNumbers
    spread: float = TRANSFERRED_SPREAD
    ranges: ProductRanges = EVERYWHERE
    surface: ProductSurface | None = None
    source: str = ""
    date: str = ""

    def terms(self, products: Products) -> ProductTerms:
        """What the formula chooses and says, by product."""
        shape = geometry(products.m, products.n, products.k, products.batch, products.item_bytes, self.spec)
        numbers = self.numbers._replace(rate_flops_per_s=self.numbers.rate_flops_per_s * products.rate_ratio)
        return product_terms(shape, numbers, self.spec.sm_count)

    def predict(self, products: Products) -> Prediction:
        """Times of the products with their 80 % intervals."""
        formula_ns = self.terms(products).time_ns
        mean, half = self.residuals(products)
        time_ns = formula_ns * np.exp(mean)
        provenance: Provenance = "transferred" if products.is_transferred else "fitted"
        return Prediction(time_ns, time_ns * np.exp(-half), time_ns * np.exp(half), provenance)

    def residuals(self, products: Products) -> tuple[Floats, Floats]:
        """By product ln(time / the formula's time), and half of the 80 % interval of ln(time)."""
        outside = self.ranges.octaves_outside(products.m, products.n, products.k, products.batch)
        wide = self.spread * (1 + outside * WIDENING)
        if products.is_transferred:
            return np.zeros(len(products)), np.maximum(wide * TRANSFERRED_FACTOR, TRANSFERRED_SPREAD)
        if self.surface is None:
            return np.zeros(len(products)), wide
        mean, deviation = self.surface.at(products.m, products.n, products.k, products.layout)
        trust = np.exp2(-outside)
        half = np.sqrt((trust * self.surface.numbers.quantile * deviation) ** 2 + (1 - trust**2) * wide**2)
        return trust * mean, half

    def explain(self, products: Products) -> ProductExplanation:
        """Where the time of the first of the products comes from."""
        one, said = self.terms(products), self.predict(products)
        mean, _ = self.residuals(products)
        return ProductExplanation(
            one.tile(0),
            one.split_k(0),
            int(one.waves[0]),
            float(one.arithmetic_ns[0]),
            float(one.loop_ns[0]),
            float(one.bytes_ns[0]),
            float(one.time_ns[0]),
            float(np.exp(mean[0])),
            tuple(zip(ProductNumbers._fields, (float(number) for number in self.numbers), UNITS, strict=True)),
            self._nearest(products),
            bool(self.ranges.octaves_outside(products.m, products.n, products.k, products.batch)[0] > 0),
            float(said.low_ns[0]),
            float(said.high_ns[0]),
        )

    def _nearest(self, products: Products) -> tuple[NearRow, ...]:
        if self.surface is None:
            return ()
        rows, factors = self.surface.rows, np.exp(self.surface.residuals.residual)
        numbers = self.surface.nearest(int(products.m[0]), int(products.n[0]), int(products.k[0]), NEAREST)
        return tuple(NearRow(int(rows.m[i]), int(rows.n[i]), int(rows.k[i]), float(factors[i])) for i in numbers)

    def to_table(self) -> dict[str, Any]:
        """The table `[fits.products]` of a calibration file, with the table "surface" inside."""
        return write_table(self.numbers, self.spread, self.ranges, self.surface, self.source, self.date)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], spec: DeviceSpec, where: str) -> ProductModel:
        """The model that `to_table` wrote; InvalidArgumentError names `where` and the number that is wrong."""
        return cls(spec, *read_table(table, spec, where))
