"""TensorFlow's static estimates."""

from __future__ import annotations

import pytest

from partita.devices.timing.costs.static_estimates import computation_time_estimate, copy_time_estimate


@pytest.mark.parametrize(
    ("size_bytes", "latency_ms", "gbps", "micros"),
    [(10_000_000, 10, 1000, 10_080), (10_000_000, 10, 100, 10_800), (10_000_000, 10, 10, 18_000), (999, 0, 8, 0)],
)
def test_copy_time_estimate(size_bytes: int, latency_ms: float, gbps: float, micros: int) -> None:
    """bytes / (gbps * 125) + latency, cut to whole microseconds."""
    assert copy_time_estimate(size_bytes, latency_ms, gbps) == micros


@pytest.mark.parametrize(("operations", "micros"), [(0, 0), (999, 0), (1000, 1), (1_999_999, 1999), (-1500, -1)])
def test_computation_time_estimate(operations: int, micros: int) -> None:
    """A thousand operations a microsecond, cut towards zero."""
    assert computation_time_estimate(operations) == micros
