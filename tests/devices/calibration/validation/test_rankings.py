"""Orders of alternatives, and what is lost by the choice that predictions make."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from hypothesis.strategies import integers
from scipy.stats import kendalltau

from partita.devices.calibration.validation.measured_set import PredictedBounds, RankedRows, RowPredictions
from partita.devices.calibration.validation.rankings import kendall_tau_b, rankings
from partita.devices.calibration.validation.rows import MeasuredRows
from partita.graph.arrays import Flags, Floats

FEW = arrays(np.float64, 12, elements=integers(0, 4).map(float))


@given(FEW, FEW)
def test_tau_b_is_scipys(first: Floats, second: Floats) -> None:
    """With ties of either column, and of both."""
    expected, tau = kendalltau(first, second).statistic, kendall_tau_b(first, second)
    assert tau is None if np.isnan(expected) else tau == pytest.approx(expected, abs=1e-12)


def ranked(predicted: list[float], measured: list[float], fits: Flags | None = None, least: int = 5):  # type: ignore[no-untyped-def]  # what rankings returns
    """The rankings of rows that are one model and one choice."""
    names, every = tuple(map(str, range(len(measured)))), np.arange(len(measured))
    value = np.array(predicted)
    rows = MeasuredRows(names, {}, {}, {"ms": np.array(measured)})
    said = RowPredictions({"ms": PredictedBounds(value, value, value)}, names, {}, fits=fits)
    return rankings(RankedRows("ms", {"a model": every}, {"a choice": every}), rows, said)


def test_the_choice_is_the_least_predicted_that_fits() -> None:
    """The third is least but does not fit; of the others the second is chosen, and the first would have been best."""
    of = ranked([5, 4, 1, 9, 8], [10, 12, 11, 20, 18], np.array([True, True, False, True, True]))
    assert of.best_that_fits["a choice"]._asdict() == {
        "rows": 5,
        "chosen": 12.0,
        "best": 10.0,
        "excess_percent": pytest.approx(20.0),
    }
    assert of.kendall_tau_b["a model"] == (5, pytest.approx(0.6))


def test_rows_without_a_value_and_few_rows_are_left_out() -> None:
    nan = float("nan")
    of = ranked([5, 4, 1, nan, 8], [10, 12, nan, 20, 18])
    assert (of.kendall_tau_b, of.best_that_fits["a choice"].rows) == ({}, 3)
    assert ranked([5, nan], [10, 12]).best_that_fits == {}
    assert ranked([5, 4], [10, 12], np.array([False, False])).best_that_fits == {}
