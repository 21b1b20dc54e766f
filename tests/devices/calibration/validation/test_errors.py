"""Statistics of errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.calibration.validation.errors import errors_of, mape_percent
from partita.devices.calibration.validation.measured_set import PredictedBounds

TIMES = st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=1, max_size=20)


def bounds(values: list[float]) -> PredictedBounds:
    """Predictions with intervals of 15 % on each side."""
    value = np.array(values)
    return PredictedBounds(value, value / 1.15, value * 1.15)


def test_an_example_by_hand() -> None:
    """The one of the module, and a row that nobody measured."""
    errors = errors_of(bounds([1.1, 0.9, 1.2, 5.0]), np.array([1.0, 1.0, 1.0, np.nan]))
    assert errors[:6] == pytest.approx((40 / 3, 10, 18, 20, 20 / 3, 200 / 3))
    assert errors.worst == 2


def test_nothing_measured_or_predicted() -> None:
    """There is no figure, rather than a perfect one."""
    assert errors_of(bounds([1.0]), np.array([np.nan])) == (None,) * 7
    assert errors_of(bounds([np.nan]), np.array([1.0])) == (None,) * 7
    assert mape_percent(np.array([np.nan]), np.array([1.0])) is None


@given(TIMES, st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(times: list[tuple[float, float]], unit: float) -> None:
    """Predictions and measurements in another unit have the same errors; no figure is larger than the largest."""
    predicted, measured = (np.array(column) for column in zip(*times, strict=True))
    errors = errors_of(bounds(list(predicted)), measured)
    scaled = errors_of(bounds(list(predicted * unit)), measured * unit)
    assert errors[:5] == pytest.approx(scaled[:5], rel=1e-6, abs=1e-6)
    figures = [abs(figure or 0.0) for figure in errors[:5]]
    assert max(figures) <= (errors.max_percent or 0.0) * (1 + 1e-12)
