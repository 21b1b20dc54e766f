"""The fit of memory-bound ops finds the numbers that made the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.calibration.fitting.memory_bound import fit_memory_bound
from partita.errors import InvalidArgumentError

BANDWIDTH = 2 * 10**12
SIZES = np.geomspace(1e3, 1e10, 24)


@given(st.floats(0.1, 0.95), st.floats(500, 30_000))
def test_numbers_are_found_again(efficiency: float, constant_ns: float) -> None:
    """Even with an outlier among the rows."""
    times = SIZES * 1e9 / (BANDWIDTH * efficiency) + constant_ns
    times[5] *= 3
    numbers = fit_memory_bound(SIZES, times, BANDWIDTH, source="s", date="d").numbers()
    assert numbers.efficiency == pytest.approx(efficiency, rel=0.05)
    assert numbers.constant_ns == pytest.approx(constant_ns, rel=0.05)


def test_the_interval_holds_four_of_five() -> None:
    """Of rows with noise of 10 %."""
    noise = np.exp(np.random.default_rng(1).normal(0, 0.1, 400))
    sizes = np.resize(SIZES, 400)
    times = (sizes * 1e9 / (BANDWIDTH * 0.7) + 3000) * noise
    said = fit_memory_bound(sizes, times, BANDWIDTH, source="s", date="d").predict(sizes)
    assert 0.72 < np.mean((said.low_ns <= times) & (times <= said.high_ns)) < 0.88


def test_too_few_and_impossible_rows() -> None:
    """An error that says what to give."""
    with pytest.raises(InvalidArgumentError, match=r"2 rows .*at least 3"):
        fit_memory_bound(SIZES[:2], SIZES[:2], BANDWIDTH, source="s", date="d")
    with pytest.raises(InvalidArgumentError, match="above 0"):
        fit_memory_bound(SIZES, SIZES - SIZES[3], BANDWIDTH, source="s", date="d")
