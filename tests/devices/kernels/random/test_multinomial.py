"""Classes are drawn as often as their probabilities say, and are the ones TensorFlow draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.random import philox
from partita.devices.kernels.random.random_ops import scrambled
from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run, shapes

LOGITS = np.array([[0, 1, 2, -1], [3, 0, -3, 0.5]], np.float32)
SEED = np.array([5, 7])
# TensorFlow 2.21 gives, for seeds 5 and 7 and six samples: two runs of one session, and the stateless op.
RUNS = [[[2, 0, 2, 1, 1, 2], [0, 0, 0, 0, 0, 0]], [[1, 1, 0, 1, 2, 2], [0, 3, 0, 0, 0, 0]]]
STATELESS = [[2, 1, 1, 1, 2, 1], [0, 0, 0, 0, 0, 0]]


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 9), st.integers(0, 2**31))
def test_rows_draw_as_many_classes_as_asked_for(rows: int, classes: int, count: int, seed: int) -> None:
    """Every number is a class; a class with a logit far below the largest never comes."""
    logits = np.zeros((rows, classes))
    logits[:, 1:] = -1e3
    drawn = check_shapes("StatelessMultinomial", logits, np.int32(count), np.array([seed, 1]))
    np.testing.assert_array_equal(drawn, np.zeros((rows, count)))


@given(st.integers(1, 9), st.integers(1, 600), st.integers(0, 2**31))
def test_a_class_is_the_first_that_lies_above_its_point(rows: int, count: int, seed: int) -> None:
    """Few rows, many rows and many samples take different ways to the same classes."""
    logits = np.random.default_rng(seed).normal(size=(rows, 3))
    sums = np.cumsum(np.exp(logits - logits.max(axis=1, keepdims=True)), axis=1)
    words = philox.stream(scrambled(np.array([seed, 1])), -(-rows * count // 2))
    points = philox.uniform_from(words, np.dtype(np.float64)).reshape(-1)[: rows * count].reshape(rows, count)
    expected = (points[:, :, None] * sums[:, None, -1:] >= sums[:, None, :]).sum(axis=2)
    drawn = run("StatelessMultinomial", logits, np.int32(count), np.array([seed, 1]))
    np.testing.assert_array_equal(drawn, expected)


def test_classes_come_as_often_as_they_should() -> None:
    """Frequencies of many samples; a few and many samples of a row take different ways."""
    probabilities = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    with np.errstate(divide="ignore"):
        logits = np.log(probabilities)
    drawn = run("StatelessMultinomial", logits, np.int32(20000), SEED)
    for row, expected in zip(drawn, probabilities, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 20000, expected, atol=0.02)


def test_few_samples_are_the_first_of_many() -> None:
    """A row of its own takes the samples one by one, however they are searched."""
    few, many = (run("StatelessMultinomial", LOGITS[:1], np.int32(n), SEED) for n in (100, 30000))
    np.testing.assert_array_equal(few, many[:, :100])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_classes_are_tensorflows(dtype: type[np.generic]) -> None:
    """The second run continues the stream; these logits are exact in every type."""
    state, attrs = DeviceState(0), dict[str, Any](seed=5, seed2=7)
    for expected in RUNS:
        drawn = check_shapes("Multinomial", LOGITS.astype(dtype), np.int32(6), **attrs)
        np.testing.assert_array_equal(drawn, RUNS[0])
        drawn = run("Multinomial", LOGITS.astype(dtype), np.int32(6), state=state, **attrs)
        np.testing.assert_array_equal(drawn, expected)
    drawn = run("StatelessMultinomial", LOGITS.astype(dtype), np.int32(6), SEED, output_dtype=DataType.INT32)
    np.testing.assert_array_equal(drawn, STATELESS)


def test_logits_that_are_not_finite_count_nothing() -> None:
    """Neither infinity nor NaN is drawn; without any finite logit the number of classes comes out, as in TensorFlow."""
    logits = np.array([[np.inf, 0.0, np.nan], [-np.inf, np.inf, np.nan]])
    np.testing.assert_array_equal(run("StatelessMultinomial", logits, np.int32(3), SEED), [[1, 1, 1], [3, 3, 3]])


@pytest.mark.parametrize(
    ("logits", "count", "message"),
    [
        (np.zeros(3), np.int32(1), r"logits should be a matrix, got shape \[3\]"),
        (np.zeros((2, 3)), np.array([1], np.int32), r"num_samples should be a scalar, got shape \[1\]"),
        (np.zeros((2, 3)), np.int32(-1), "num_samples should be non-negative, got -1"),
        (np.zeros((2, 0)), np.int32(1), "num_classes should be positive, got 0"),
    ],
)
def test_arguments_are_checked(logits: np.ndarray, count: Any, message: str) -> None:
    """The messages are TensorFlow's."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("Multinomial", logits, count)


def test_the_number_of_samples_may_be_unknown() -> None:
    """Then so is the second size; a negative number is refused before the run."""
    assert shapes("Multinomial", (None, 4), ()) == [(None, None)]
    with pytest.raises(InvalidArgumentError, match="given by scalar input 1, must be non-negative but is -1"):
        shapes("Multinomial", (2, 4), np.int32(-1))
