"""The spread of measured times."""

from __future__ import annotations

from hypothesis import given, strategies as st

from partita.devices.timing.tracing.spread import spread_of


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_the_time_is_one_of_them_and_within_its_bounds(times: list[int]) -> None:
    """And the bounds of several are within the times."""
    spread = spread_of(times)
    assert spread.time_ns in times
    assert spread.low_ns <= spread.time_ns <= spread.high_ns
    assert len(times) == 1 or min(times) <= spread.low_ns <= spread.high_ns <= max(times) + 1


def test_one_time_is_assumed_to_vary_by_a_tenth() -> None:
    """As the constant says."""
    assert spread_of([1000]) == (1000, 900, 1100)
    assert spread_of(range(101)) == (50, 10, 90)
