"""Binomial numbers follow their distribution, and are the ones TensorFlow draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from partita.devices.state import VARIABLE_TYPE, DeviceState, ResourceHandle, Variable, handle_array
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run, shapes

SEED = np.array([5, 7])
COUNTS, PROBS = np.array([3, 20, 100, 100], np.float32), np.array([0.4, 0.9, 0.3, 0.999], np.float32)
# TensorFlow 2.21 gives, for the seed above and shape [3, 4].
TENSORFLOW = [[1, 20, 28, 100], [1, 16, 29, 100], [1, 20, 26, 100]]


def draw(shape: list[int], counts: Any, probs: Any, dtype: DataType = DataType.DOUBLE) -> np.ndarray:
    """Numbers that the seed gives."""
    counts, probs = np.asarray(counts, np.float64), np.asarray(probs, np.float64)
    drawn = check_shapes("StatelessRandomBinomial", np.array(shape, np.int32), SEED, counts, probs, dtype=dtype)
    return np.asarray(drawn)


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.INT64, DataType.HALF, DataType.FLOAT, DataType.DOUBLE])
def test_numbers_are_tensorflows(dtype: DataType) -> None:
    """By sums of waits and by transformed rejection, of either outcome; the same in every type."""
    drawn = run("StatelessRandomBinomial", np.array([3, 4]), SEED, COUNTS, PROBS, dtype=dtype)
    np.testing.assert_array_equal(drawn, np.array(TENSORFLOW).astype(drawn.dtype))


def test_a_generator_moves_on() -> None:
    """TensorFlow 2.21 gives these from the state [1, 2, 3] on: 200 blocks per number in all, rounded, times 256."""
    handle = handle_array(ResourceHandle("", "localhost", "state", VARIABLE_TYPE))
    state, variable = DeviceState(0), Variable("state", DataType.INT64, np.array([1, 2, 3]))
    state.resource(handle.item().key, lambda: variable)
    inputs = (np.array([4]), np.float32(10), np.float32(0.3))
    for expected in ([6, 2, 4, 1], [0, 4, 4, 2]):
        drawn = run("StatefulRandomBinomial", handle, np.int64(1), *inputs, state=state, dtype=DataType.INT32)
        np.testing.assert_array_equal(drawn, expected)
    np.testing.assert_array_equal(variable.read(), [179201, 2, 3])
    with pytest.raises(InvalidArgumentError, match="Unsupported algorithm id: 3"):
        run("StatefulRandomBinomial", handle, np.int64(3), *inputs, state=state)


@pytest.mark.parametrize(("count", "prob"), [(7, 0.2), (12, 0.95), (60, 0.4), (1e6, 0.7)])
def test_numbers_follow_their_distribution(count: float, prob: float) -> None:
    """A chi-squared test of ten equally likely classes, or as many as there are."""
    drawn = draw([5000], count, prob)
    exact = stats.binom(count, prob)
    bounds = np.unique(exact.ppf(np.linspace(0, 1, 11)[1:-1]))
    expected = np.diff([0, *exact.cdf(bounds), 1]) * 5000
    counted = np.bincount(np.searchsorted(bounds, drawn), minlength=len(expected))
    kept = expected > 1
    assert ((counted - expected)[kept] ** 2 / expected[kept]).sum() < stats.chi2.ppf(0.999, kept.sum())


@given(st.integers(0, 200), st.floats(0, 1))
def test_no_more_succeed_than_try(count: int, prob: float) -> None:
    """Also for probabilities of zero and one."""
    drawn = draw([20], count, prob)
    assert drawn.min() >= 0
    assert drawn.max() <= count


def test_parameters_without_meaning() -> None:
    """Fewer than no trials give none, and NaN gives NaN, as in TensorFlow (but for a count of NaN, where it hangs)."""
    np.testing.assert_array_equal(draw([4], [-1.0, 5.0, 5.0, 5.0], [0.7, -0.1, 1.5, np.nan]), [0, 0, 5, np.nan])
    assert np.isnan(draw([], np.nan, 0.5))
    assert draw([2, 0], np.zeros(0), 0.5).shape == (2, 0)


@pytest.mark.parametrize(
    ("shape", "counts", "message"),
    [
        (np.array(2), np.zeros(()), r"Input shape should be a vector, got shape: \[\]"),
        (np.array([2]), np.zeros(3), "Shape passed in must end with broadcasted shape."),
        (np.array([2]), np.zeros(2), r"counts and probs must have compatible batch dimensions: \[2\] vs. \[3\]"),
    ],
)
def test_shapes_are_checked(shape: np.ndarray, counts: np.ndarray, message: str) -> None:
    """The messages are TensorFlow's."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("StatelessRandomBinomial", shape, SEED, counts, np.zeros(3) if counts.shape == (2,) else np.zeros(()))
    assert shapes("StatefulRandomBinomial", (), (), np.array([2, 3]), None, None) == [(2, 3)]
