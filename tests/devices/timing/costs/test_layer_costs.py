"""Costs of attention and grouped products: fitted where there are rows, else transferred by the ratio of devices."""

from __future__ import annotations

from typing import Any

import pytest

from partita.devices import Calibration, OpCost, attention_cost, device_spec, grouped_product_cost
from partita.devices.spec import DeviceSpec
from partita.devices.timing.costs.source import UnknownCost
from partita.devices.timing.fits.calibration import DeviceFits
from partita.devices.timing.fits.product_formula import ProductNumbers
from partita.devices.timing.fits.products import ProductModel
from partita.errors import InvalidArgumentError

B200 = device_spec("B200-SXM")
SLOW = DeviceSpec("slow", "GPU", {"fp32": 10**13, "bf16": 10**14}, 10**12, 10**11, sm_count=50, l2_bytes=50 << 20)


def attention(spec: DeviceSpec, calibration: Calibration | None = None, **changed: Any) -> OpCost:  # Any: sizes
    """The cost of one layer, some sizes changed."""
    sizes = {"direction": "fwd", "batch": 1, "seq_len": 8192, "heads": 32, "kv_heads": 8}
    both = {**sizes, "qk_head_dim": 128, "v_head_dim": 128, **changed}
    return attention_cost(spec, calibration=calibration, **both)


def grouped(spec: DeviceSpec, calibration: Calibration | None = None) -> OpCost:
    """The cost of one grouped product."""
    return grouped_product_cost(spec, groups=40, m=616, n=3072, k=5120, stage="fwd", calibration=calibration)


def fits_of_b200(*parts: str, products: float = 0) -> DeviceFits:
    """The catalog's fits of those parts, and a model of products at a rate."""
    fits = Calibration.of_catalog().device("B200-SXM")
    assert fits is not None
    table = {part: fits.table[part] for part in parts}
    return DeviceFits(B200, table | ({"products": model(B200, products)} if products else {}))


def model(spec: DeviceSpec, rate: float) -> dict[str, Any]:
    """The table of a formula of products with that rate, all else fast."""
    return ProductModel(spec, ProductNumbers(1, rate, 1, 1e-3, 1e-3, 1e15, 0.1, 1)).to_table()


def test_the_catalog_has_rows_of_one_device() -> None:
    """It is fitted there, inside its interval, with the operations of the full square."""
    for cost in (attention(B200), grouped(B200)):
        assert cost.provenance == "fitted"
        assert cost.low_ns is not None
        assert cost.high_ns is not None
        assert cost.low_ns < cost.time_ns < cost.high_ns
    assert attention(B200).flops == 2 * 8192**2 * 32 * 256


def test_transferred_by_the_ratio_of_products() -> None:
    """A device whose products are five times as slow takes five times as long, and its interval is wider."""
    calibration = Calibration(
        {
            "B200-SXM": fits_of_b200("attention", "grouped", products=1e15),
            "slow": DeviceFits(SLOW, {"products": model(SLOW, 2e14)}),
        }
    )
    for ask in (attention, grouped):
        on_b200, on_slow = ask(B200, calibration), ask(SLOW, calibration)
        assert on_slow.provenance == "transferred"
        assert on_slow.time_ns / on_b200.time_ns > 2
        assert on_slow.high_ns is not None
        assert on_b200.high_ns is not None
        assert on_slow.high_ns / on_slow.time_ns > on_b200.high_ns / on_b200.time_ns


def test_transferred_by_rates_without_products() -> None:
    """Without models of products the rates of the datasheets decide, latencies by their root; the peak caps it."""
    calibration = Calibration({"B200-SXM": fits_of_b200("attention")})
    cost = attention(SLOW, calibration)
    assert cost.provenance == "transferred"
    ratio = 2250e12 * B200.matrix_efficiency / 1e14
    assert ratio**0.5 < cost.time_ns / attention(B200, calibration).time_ns < ratio
    assert cost.time_ns >= cost.flops / 2 / 1e14 * 1e9


def test_nobody_knows() -> None:
    """A CPU, and a calibration without a fit of that part, are errors."""
    with pytest.raises(UnknownCost, match="modelled on GPUs"):
        attention(device_spec("Grace"))
    with pytest.raises(UnknownCost, match="no device of the calibration has a fit of grouped"):
        grouped(B200, Calibration({"B200-SXM": fits_of_b200("attention")}))


def test_wrong_sizes_are_refused() -> None:
    """Also sizes that are no whole numbers."""
    with pytest.raises(InvalidArgumentError, match="seq_len = 0 must be at least 1"):
        attention(B200, seq_len=0)
    with pytest.raises(InvalidArgumentError, match="must be 1 whole numbers"):
        attention(B200, heads=1.5)
