"""From products and their times to a `ProductModel`: eight numbers of a formula, and a surface of what it misses.

    Products(m=[8, ...], n=[3072, ...], ...), [3210.0, ...] ns     ->  floor 2810 ns, rate 786 TFLOP/s, ..., surface

The numbers are fitted in log space, so that every size counts alike; then the surface is fitted to what is left.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ...spec import DeviceSpec
from ...timing.fits.product_formula import Geometry, ProductNumbers, geometry, product_terms
from ...timing.fits.product_surface import ProductRows, ProductSurface, features
from ...timing.fits.product_table import ProductRanges
from ...timing.fits.products import ProductModel, Products, bf16_peak
from .surfaces import fit_surface

LEAST_SURFACE_ROWS = 30
"""with fewer, nothing can be said about lengths"""
STARTS = (
    (2000, 0.8, 1500, 500, 40, 0.8, 0.3, 2),
    (1000, 0.7, 4000, 1500, 100, 0.7, 0.6, 1.5),
    (3000, 0.6, 300, 2000, 20, 0.6, 0.15, 3),
)
"""where the search begins; rate and bandwidth as shares of the datasheet's"""
LEAST = (200, 0.05, 1, 1, 0.5, 0.1, 0.02, 1)
MOST = (50_000, 1.6, 30_000, 20_000, 2_000, 1.5, 2, 8)
RATE, BANDWIDTH = 1, 5


def fit_products(products: Products, time_ns: Floats, spec: DeviceSpec, *, source: str, date: str) -> ProductModel:
    """The model of products on `spec` fitted to `time_ns`, one a product.

    InvalidArgumentError if the device's SMs or L2 are not known, a time is not positive, or rows are too few.
    """
    _check(products, time_ns, spec)
    shape = geometry(products.m, products.n, products.k, products.batch, products.item_bytes, spec)
    numbers = ProductNumbers(*(float(f"{number:.6g}") for number in fit_formula(shape, time_ns, spec)))
    residuals = np.log(time_ns / product_terms(shape, numbers, spec.sm_count).time_ns)
    spread = float(f"{np.quantile(np.abs(residuals), 0.8) * _few(len(products)):.6g}")
    ranges = ProductRanges(
        *((int(a.min()), int(a.max())) for a in (products.m, products.n, products.k, products.batch))
    )
    surface = _surface(products, residuals, spec.sm_count) if len(products) >= LEAST_SURFACE_ROWS else None
    return ProductModel(spec, numbers, spread, ranges, surface, source, date)


def _surface(products: Products, residuals: Floats, sm_count: int) -> ProductSurface:
    m, n, k, layout = products.m, products.n, products.k, products.layout
    fitted = fit_surface(features(m, n, k, layout, sm_count), residuals)
    kept = fitted.kept
    rows = ProductRows(m[kept], n[kept], k[kept], None if layout is None else tuple(layout[i] for i in kept))
    return ProductSurface(rows, fitted.residuals, fitted.numbers, sm_count)


def _few(rows: int) -> float:
    """By how much eight numbers fitted to few rows are surer of those rows than of others."""
    return float(np.sqrt((rows + 1) / max(rows - len(ProductNumbers._fields), 1)))


def _check(products: Products, time_ns: Floats, spec: DeviceSpec) -> None:
    if not spec.sm_count or not spec.l2_bytes:
        missing = "sm_count" if not spec.sm_count else "l2"
        raise InvalidArgumentError(f"{spec.name!r} has no {missing}, which products need; give it in its table")
    if len(time_ns) != len(products) or len(products) < len(ProductNumbers._fields):
        raise InvalidArgumentError(
            f"{len(time_ns)} times of {len(products)} products are too few for the {len(ProductNumbers._fields)} "
            f"numbers of {spec.name!r}; measure more products"
        )
    if not np.all(np.isfinite(time_ns)) or np.min(time_ns) <= 0:
        raise InvalidArgumentError(f"a product of {spec.name!r} has the time {np.min(time_ns)} ns; it must be above 0")


def _scaled(values: tuple[float, ...], spec: DeviceSpec) -> Floats:
    scaled = np.array(values, dtype=np.float64)
    scaled[RATE] *= bf16_peak(spec)
    scaled[BANDWIDTH] *= spec.memory_bandwidth_bytes_per_s
    return np.asarray(np.log(scaled), dtype=np.float64)


def bounds(spec: DeviceSpec) -> tuple[ProductNumbers, ProductNumbers]:
    """The least and the greatest numbers that a fit considers."""
    least, greatest = (ProductNumbers(*np.exp(_scaled(values, spec)).tolist()) for values in (LEAST, MOST))
    return least, greatest


def fit_formula(shape: Geometry, time_ns: Floats, spec: DeviceSpec) -> ProductNumbers:
    """The eight numbers with the least robust error of log time over a few starts."""
    low, high, measured = _scaled(LEAST, spec), _scaled(MOST, spec), np.log(time_ns)

    def errors(logs: Floats) -> Floats:
        said = product_terms(shape, ProductNumbers(*np.exp(logs)), spec.sm_count).time_ns
        return np.asarray(np.log(said) - measured, dtype=np.float64)

    fits = [
        least_squares(errors, _scaled(start, spec), bounds=(low, high), loss="soft_l1", f_scale=0.1, max_nfev=60)
        for start in STARTS
    ]
    return ProductNumbers(*np.exp(min(fits, key=lambda fit: float(fit.cost)).x).tolist())
