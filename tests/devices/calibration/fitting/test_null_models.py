"""Null models: what they are fitted to, and what they say between and beyond it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.calibration.fitting.null_models import (
    datasheet_collective_ns,
    fit_roofline_3,
    log_log,
    nearest_ranks,
)
from partita.devices.catalog import device_spec
from partita.errors import InvalidArgumentError


@given(st.floats(-2, 2), st.floats(1e-3, 1e3), st.lists(st.integers(1, 10**9), min_size=2, max_size=9, unique=True))
def test_a_power_law_is_interpolated_exactly(power: float, factor: float, sizes: list[int]) -> None:
    """Between and beyond the measured sizes: it is a straight line in logarithms."""
    known, wanted = np.array(sizes, float), np.array([1.0, 77.0, 1e9])
    assert log_log(known, factor * known**power, wanted) == pytest.approx(factor * wanted**power, rel=1e-6)


def test_repeated_and_single_sizes() -> None:
    """Repetitions count as their geometric mean; one size says nothing of another."""
    assert log_log(np.array([4.0, 4.0]), np.array([1.0, 4.0]), np.array([1.0, 4.0, 9.0])).tolist() == [2.0] * 3
    assert log_log(np.array([16e3, 1e3]), np.array([40.0, 10.0]), np.array([4e3])) == pytest.approx([20.0])


def test_a_roofline_is_found_again() -> None:
    """From times that three numbers made."""
    flops, size = np.geomspace(1e6, 1e13, 40), np.geomspace(1e9, 1e5, 40)
    times = 2000 + 1e9 * np.maximum(flops / 3e14, size / 2e12)
    fitted = fit_roofline_3(flops, size, times)
    assert fitted[:3] == pytest.approx((2000, 3e14, 2e12), rel=1e-3)
    assert fitted.time_ns(flops, size) == pytest.approx(times, rel=1e-3)
    with pytest.raises(InvalidArgumentError, match="too few"):
        fit_roofline_3(flops[:2], size[:2], times[:2])


def test_the_datasheet_of_a_collective() -> None:
    """A ring of 4 over NVLink4: three quarters of the bytes twice, six latencies."""
    spec, size = device_spec("h100_sxm"), np.array([450e6])
    moving_ns = 1e6 * 1.5
    assert datasheet_collective_ns("all_reduce", 4, size, spec)[0] == pytest.approx(moving_ns, rel=0.02)
    gather = datasheet_collective_ns("all_gather", 4, size, spec)
    assert gather[0] == pytest.approx(moving_ns / 2, rel=0.02)
    assert (nearest_ranks(8, [2, 4]), nearest_ranks(4, [2, 8])) == (4, 8)
