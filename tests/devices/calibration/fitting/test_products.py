"""Fits of products: they find what made the times, come back from their tables, and refuse what cannot be fitted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partita.devices.calibration.fitting.products import fit_products
from partita.devices.spec import DeviceSpec
from partita.devices.timing.fits.products import ProductModel, Products, datasheet_ns
from partita.errors import InvalidArgumentError

SPEC = DeviceSpec("G", "GPU", {"fp32": 10**13, "bf16": 10**15}, 3 * 10**12, 10**11, sm_count=132, l2_bytes=50 << 20)


def measured(count: int, seed: int) -> tuple[Products, NDArray[np.float64]]:
    """Products of all sizes, and times with a smooth error that no formula has."""
    m, n, k = (2 ** np.random.default_rng(seed).uniform(4, 13, (3, count))).astype(np.int64) * 8
    products = Products(m, n, k, np.ones(count))
    return products, (2000 + 1.4 * datasheet_ns(products, SPEC)) * np.exp(0.2 * np.sin(np.log2(m)))


def fitted(count: int = 120) -> ProductModel:
    """A model of some of the products."""
    return fit_products(*measured(count, 0), SPEC, source="rig.csv", date="2026-11-23")


def test_predicts_products_that_were_not_measured() -> None:
    """On other products the mean error is below that of the formula, and the interval holds most of them."""
    model, (products, time_ns) = fitted(), measured(200, 1)
    said = model.predict(products)
    error = float(np.mean(np.abs(said.time_ns / time_ns - 1)))
    assert error < 0.08
    assert error < float(np.mean(np.abs(model.terms(products).time_ns / time_ns - 1)))
    assert 0.65 <= float(np.mean((said.low_ns <= time_ns) & (time_ns <= said.high_ns))) <= 0.97


def test_comes_back_from_its_table() -> None:
    """A model read from its table predicts the same, and the same rows give the same table."""
    model, (products, _) = fitted(), measured(50, 2)
    table = model.to_table()
    again = ProductModel.from_table(table, SPEC, "rig.toml")
    np.testing.assert_allclose(again.predict(products).time_ns, model.predict(products).time_ns, rtol=1e-9)
    np.testing.assert_allclose(again.predict(products).low_ns, model.predict(products).low_ns, rtol=1e-9)
    assert fitted().to_table() == table == again.to_table()


def test_interval_widens_outside_the_range() -> None:
    """Far outside the fitted sizes the formula speaks, less and less sure."""
    model, one = fitted(), np.array([1, 1, 1])
    far = Products(one * 64, one * 64, np.array([2**20, 2**24, 2**28]), one)
    said, formula_ns = model.predict(far), model.terms(far).time_ns
    np.testing.assert_allclose(said.time_ns, formula_ns, rtol=0.01)
    widths = np.log(said.high_ns / said.low_ns)
    assert widths[0] < widths[1] < widths[2]


def test_other_types_are_transferred() -> None:
    """Another element type has no residual and a wider interval, and says so."""
    model, one = fitted(), np.array([1])
    sizes = (one * 4096, one * 4096, one * 4096, one)
    own, other = (
        model.predict(Products(*sizes)),
        model.predict(Products(*sizes, item_bytes=4, rate_ratio=0.5, is_transferred=True)),
    )
    assert (own.provenance, other.provenance) == ("fitted", "transferred")
    assert other.time_ns[0] > own.time_ns[0]
    assert np.log(other.high_ns / other.low_ns)[0] > np.log(own.high_ns / own.low_ns)[0]


def test_explains_one_product() -> None:
    """The formula's time with its factor is the time that is predicted."""
    model, one = fitted(), np.array([1])
    product = Products(one * 4096, one * 4096, one * 4096, one)
    said = model.explain(product)
    assert said.formula_ns * said.residual_factor == pytest.approx(model.predict(product).time_ns[0])
    assert not said.is_outside_range
    assert len(said.nearest) == 5
    assert said.formula_ns > max(said.arithmetic_ns, said.loop_ns, said.bytes_ns)


def test_fewer_rows_than_numbers_are_refused() -> None:
    """Seven rows do not fit eight numbers."""
    with pytest.raises(InvalidArgumentError, match="7 times of 7 products are too few for the 8 numbers of 'G'"):
        fitted(7)


def test_a_device_without_sms_is_refused() -> None:
    """Waves need the number of SMs."""
    products, time_ns = measured(20, 0)
    with pytest.raises(InvalidArgumentError, match="'H' has no sm_count"):
        fit_products(products, time_ns, DeviceSpec("H", "GPU", {"fp32": 1}, 1, 1), source="rig.csv", date="2026-11-23")


def test_a_table_without_a_number_names_it() -> None:
    """The error says which file and which key."""
    table = fitted().to_table()
    del table["step_ns"]
    with pytest.raises(InvalidArgumentError, match=r"rig\.toml has no 'step_ns'"):
        ProductModel.from_table(table, SPEC, "rig.toml")
