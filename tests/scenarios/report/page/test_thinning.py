"""Laws of thinned curves: few points, none of them made up, and the extremes and the bytes are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.scenarios.report.page import thinning
from partita.scenarios.report.page.thinning import MOST_POINTS, kept_points, mean_rates

FEW = 20


@pytest.fixture
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Curves of more than 20 points are thinned."""
    monkeypatch.setattr(thinning, "MOST_POINTS", FEW)
    monkeypatch.setattr(thinning, "_SPANS", FEW // 2 - 2)


@pytest.mark.usefixtures("few_points")
@pytest.mark.filterwarnings("ignore:.*function-scoped")
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 1000)), min_size=1, max_size=200), st.integers(0, 99))
def test_a_thinned_curve_keeps_its_peak_and_the_extremes_of_each_span(steps: list[tuple[int, int]], rest: int) -> None:
    """The first point too, in order, and at most as many as a screen shows."""
    gaps, totals = zip(*steps, strict=True)
    at_ns, total = np.cumsum([0, *gaps[1:]]), np.array(totals)
    kept = kept_points(at_ns, total, int(at_ns[-1]) + rest + 1)
    assert len(kept) <= max(FEW, 0 if len(steps) > FEW else len(steps))
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert int(np.argmax(total)) in kept
    assert total[kept].min() in (total.min(), *total[:1])
    if len(steps) <= FEW:
        assert kept.tolist() == list(range(len(steps)))


@pytest.mark.usefixtures("few_points")
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(1, 10**9)), min_size=1, max_size=100))
def test_mean_rates_carry_the_same_bytes(loads: list[tuple[int, int, int]]) -> None:
    """In order, without overlap, and never faster than the fastest load."""
    gap, took, rate = (np.array(column) for column in zip(*loads, strict=True))
    end = np.cumsum(gap + took)
    begin, until = end - took, int(end[-1])
    shown_begin, shown_end, shown_rate = mean_rates(begin, end, rate.astype(np.float64), until)
    assert len(shown_begin) <= max(FEW, 0 if len(loads) > FEW else len(loads))
    assert (shown_begin[1:] >= shown_end[:-1]).all()
    assert (shown_end <= until).all()
    assert ((shown_end - shown_begin) * shown_rate).sum() == pytest.approx((took * rate).sum())
    assert shown_rate.max() <= rate.max() * (1 + 1e-9)


def test_a_long_curve_fits_a_screen() -> None:
    """A saw of 100,000 teeth keeps its bounds in every span."""
    at_ns = np.arange(100_000)
    total = np.where(at_ns % 2, 100, 0)
    total[77_777] = 101
    kept = kept_points(at_ns, total, 100_000)
    assert MOST_POINTS // 2 < len(kept) <= MOST_POINTS
    assert set(total[kept].tolist()) == {0, 100, 101}
