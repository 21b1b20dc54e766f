"""Laws of the formula of products: more work never takes less time, faster hardware never more."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.catalog import device_spec
from partita.devices.spec import DeviceSpec
from partita.devices.timing.fits import product_formula
from partita.devices.timing.fits.product_formula import ProductNumbers
from partita.devices.timing.fits.product_table import ProductRanges
from partita.devices.timing.fits.products import ProductModel, Products

ALL = ProductRanges(*4 * ((1, 1 << 17),))
SIZES = st.integers(1, 1 << 16)


@st.composite
def models(draw: st.DrawFn) -> ProductModel:
    """A device of any size with numbers anywhere a fit may go."""
    spec = DeviceSpec(
        "G", "GPU", {"fp32": 10**14}, 10**12, 10**11, sm_count=draw(st.integers(1, 200)), l2_bytes=50 << 20
    )
    spans = ((200, 5e4), (5e12, 2e14), (1, 3e4), (1, 2e4), (0.5, 2e3), (1e11, 2e12), (0.02, 2), (1, 8))
    numbers = [low * (high / low) ** draw(st.floats(0, 1)) for low, high in spans]
    return ProductModel(spec, ProductNumbers(*numbers), 0.2, ALL)


def time_ns(model: ProductModel, m: int, n: int, k: int) -> float:
    """What the formula says of one product."""
    one = np.array([1])
    return float(model.terms(Products(one * m, one * n, one * k, one)).time_ns[0])


def test_example_of_the_docstring() -> None:
    """The products of the module's example have the tiles, terms and times that it prints."""
    numbers = ProductNumbers(2740, 786e12, 1, 33.2, 61.9, 2720e9, 0.209, 1.04)
    model = ProductModel(device_spec("H100-SXM"), numbers)
    sizes = np.array([4096, 4096]), np.array([4096, 4096])
    said = model.terms(Products(np.array([4096, 64]), *sizes, np.array([1, 1])))
    for row, m in enumerate((4096, 64)):
        rows, columns = said.tile(row)
        terms = (said.arithmetic_ns, said.loop_ns, said.bytes_ns, said.time_ns)
        figures = [f"{term[row]:.0f} ns" for term in terms]
        line = [f"{m} x 4096 x 4096", f"{rows}x{columns}", str(said.waves[row]), *figures]
        assert " ".join(" ".join(line).split()) in " ".join((product_formula.__doc__ or "").split())


@given(models(), SIZES, SIZES, SIZES)
def test_doubling_a_dimension_never_takes_less(model: ProductModel, m: int, n: int, k: int) -> None:
    """A product with one dimension twice as large takes at least as long."""
    before = time_ns(model, m, n, k)
    for larger in ((2 * m, n, k), (m, 2 * n, k), (m, n, 2 * k)):
        assert time_ns(model, *larger) >= before * (1 - 1e-12)


@given(models(), SIZES, SIZES, SIZES)
def test_higher_rates_are_never_slower(model: ProductModel, m: int, n: int, k: int) -> None:
    """A product takes no longer with twice the rate, or twice the bandwidth."""
    before, numbers = time_ns(model, m, n, k), model.numbers
    for faster in (
        numbers._replace(rate_flops_per_s=2 * numbers.rate_flops_per_s),
        numbers._replace(bandwidth_bytes_per_s=2 * numbers.bandwidth_bytes_per_s),
    ):
        assert time_ns(ProductModel(model.spec, faster, 0.2, ALL), m, n, k) <= before
