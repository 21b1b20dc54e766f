"""The cross entropy over parts of the classes: joined over shards it is that of all, for any cut and padding."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.half_types import widen
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run, shapes

TOLERANCES = {np.float64: 1e-13, np.float32: 2e-6, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}
OP, GRAD = "Partita>SoftmaxCrossEntropy", "Partita>SoftmaxCrossEntropyGrad"


def attrs_of(dtype: Any, **attrs: Any) -> dict[str, Any]:
    """U as T wants it."""
    return {"U": DataType.DOUBLE if dtype == np.float64 else DataType.FLOAT, **attrs}


@st.composite
def sharded(draw: st.DrawFn) -> tuple[Array, Array, list[int], int]:
    """Logits of all classes, labels (some below 0), the first class of each shard, and how many classes count."""
    rows, classes = draw(st.integers(0, 5)), draw(st.integers(1, 9))
    padded = classes + draw(st.integers(0, 6))
    cuts = sorted(draw(st.sets(st.integers(1, padded - 1), max_size=3))) if padded > 1 else []
    dtype, labels_dtype = draw(st.sampled_from(list(TOLERANCES))), draw(st.sampled_from([np.int32, np.int64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    logits = (rng.standard_normal((rows, padded)) * draw(st.sampled_from([1, 30]))).astype(dtype)
    return logits, rng.integers(-2, classes, rows).astype(labels_dtype), [0, *cuts, padded], classes


def log_sum_exp(values: Array) -> Array:
    """Of each row, in float64."""
    greatest = values.max(1, initial=-np.inf)
    return np.asarray(np.log(np.exp(values - greatest[:, None]).sum(1)) + greatest)


@given(sharded())
def test_shards_joined_are_the_whole(drawn: Any) -> None:
    """logsumexp of the shards' logsumexp, and the sum of their targets, are those of the classes that count."""
    logits, labels, ends, classes = drawn
    attrs, bound = attrs_of(logits.dtype.type, classes_end=classes), TOLERANCES[logits.dtype.type]
    outputs = [
        check_shapes(OP, logits[:, first:end], labels, np.int32(first), **attrs) for first, end in pairwise(ends)
    ]
    wide = widen(logits).astype(float)[:, :classes]
    joint = log_sum_exp(np.stack([shard[0] for shard in outputs], 1).astype(float))
    np.testing.assert_allclose(joint, log_sum_exp(wide), bound, bound * (1 + np.abs(wide).max(initial=0.0)))
    targets = np.where(labels < 0, 0, wide[np.arange(len(labels)), np.maximum(labels, 0)])
    np.testing.assert_array_equal(np.sum([shard[1] for shard in outputs], 0), targets)


@given(sharded(), st.integers(0, 2**32 - 1))
def test_gradients_of_shards_are_parts_of_the_whole(drawn: Any, seed: int) -> None:
    """By the joint logsumexp: p d_logsumexp, d_target at the label, and 0 for what does not count."""
    logits, labels, ends, classes = drawn
    attrs, rng, rows = attrs_of(logits.dtype.type, classes_end=classes), np.random.default_rng(seed), len(labels)
    number = np.float64 if logits.dtype == np.float64 else np.float32
    wide = widen(logits).astype(float)[:, :classes]
    whole = log_sum_exp(wide)
    a, b = (rng.standard_normal(rows).astype(number) for _ in range(2))
    found = np.concatenate(
        [
            widen(
                check_shapes(GRAD, logits[:, first:end], labels, np.int32(first), whole.astype(number), a, b, **attrs)
            )
            for first, end in pairwise(ends)
        ],
        1,
    )
    expected = np.zeros(logits.shape)
    expected[:, :classes] = np.exp(wide - whole[:, None]) * a[:, None]
    at = np.flatnonzero(labels >= 0)
    expected[at, labels[at]] += b[at]
    bound = TOLERANCES[logits.dtype.type] * 20
    np.testing.assert_allclose(found, expected, bound, bound)


def test_a_shard_of_padding_alone_says_nothing() -> None:
    """Its logsumexp is -inf and its gradient 0, without NaN; so too for rows of -inf."""
    logits, labels = np.array([[1e30, 2.0]], np.float32), np.array([1], np.int32)
    logsumexp, target = run(OP, logits, labels, np.int32(6), classes_end=5)
    assert logsumexp == [-np.inf]
    assert target == [0]
    ones = np.ones(1, np.float32)
    assert not run(GRAD, logits, labels, np.int32(6), logsumexp, ones, ones, classes_end=5).any()
    nothing = np.full((1, 2), -np.inf, np.float32)
    assert run(OP, nothing, labels, np.int32(4))[0] == [-np.inf]
    np.testing.assert_array_equal(
        run(GRAD, nothing, labels, np.int32(4), np.array([-np.inf], np.float32), ones, ones), [[0, 0]]
    )


def test_large_logits_do_not_overflow() -> None:
    """The greatest is subtracted first; half types are summed in float32."""
    logsumexp, target = run(OP, np.array([[1e4, 1e4]], np.float16), np.array([0], np.int32), np.int32(0))
    np.testing.assert_allclose(logsumexp, [1e4 + np.log(2)], 1e-6)
    assert target == [1e4]


LOGITS, LABELS, ZERO = np.ones((2, 3), np.float32), np.array([0, 1], np.int32), np.int32(0)
ROWS = np.ones(2, np.float32)
REFUSED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "a padded label": ((LOGITS, LABELS + 1, ZERO), {"classes_end": 2}, "label 2 is of no class: they end at .* = 2"),
    "too few labels": ((LOGITS, LABELS[:1], ZERO), {}, r"logits have the shape \[2,3\] and labels \[1\]"),
    "a vector of logits": ((LOGITS[0], LABELS, ZERO), {}, "logits must have rank 2"),
    "a vector of first classes": ((LOGITS, LABELS, np.array([0], np.int32)), {}, "first_class must be a scalar"),
    "another type": ((LOGITS, LABELS, ZERO), {"U": DataType.DOUBLE}, "has U = float, not double: set the attr U"),
    "a short gradient": ((LOGITS, LABELS, ZERO, ROWS, ROWS[:1], ROWS), {}, r"d_logsumexp has the shape \[1\], but"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    """The message names the input and what is wrong."""
    inputs, attrs, message = REFUSED[name]
    with pytest.raises(InvalidArgumentError, match=message):
        run(OP if len(inputs) == 3 else GRAD, *inputs, **attrs)


def test_shapes_that_do_not_fit_are_refused_before_any_run() -> None:
    """Rows may be known from the labels alone."""
    assert shapes(OP, (None, 9), (4,), ()) == [(4,), (4,)]
    assert shapes(GRAD, (None, 9), None, (), None, None, (4,)) == [(4, 9)]
    with pytest.raises(InvalidArgumentError, match="logits have 3 rows and labels 4"):
        shapes(OP, (3, 9), (4,), ())
