"""Softmax is a distribution over its row; cross entropies and their gradients follow from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run, shapes

LOGITS = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5), elements=st.floats(-700, 700)
)
ROWS = hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=st.floats(-50, 50))


@given(LOGITS)
def test_softmax_sums_to_one_and_its_logarithm_agrees(logits: Array) -> None:
    """Even where exponentials of the bare logits would overflow."""
    probabilities = check_shapes("Softmax", logits)
    np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-9)
    np.testing.assert_allclose(probabilities, special.softmax(logits, -1), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(
        check_shapes("LogSoftmax", logits), special.log_softmax(logits, -1), rtol=1e-9, atol=1e-9
    )


@given(ROWS, st.integers(0, 99))
def test_cross_entropy_and_its_gradient(logits: Array, seed: int) -> None:
    """loss = -sum(labels * log softmax); its gradient is softmax minus labels where labels sum to one."""
    labels = special.softmax(np.random.default_rng(seed).standard_normal(logits.shape), -1)
    loss, gradient = check_shapes("SoftmaxCrossEntropyWithLogits", logits, labels)
    np.testing.assert_allclose(loss, -(labels * special.log_softmax(logits, -1)).sum(-1), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gradient, special.softmax(logits, -1) - labels, rtol=1e-9, atol=1e-9)


@given(ROWS, st.integers(0, 99), st.sampled_from(["int32", "int64"]))
def test_sparse_labels_are_one_hot_labels(logits: Array, seed: int, dtype: str) -> None:
    """A class number stands for a row with a one there."""
    classes = np.random.default_rng(seed).integers(0, logits.shape[1], logits.shape[0]).astype(dtype)
    sparse = check_shapes("SparseSoftmaxCrossEntropyWithLogits", logits, classes)
    dense = run("SoftmaxCrossEntropyWithLogits", logits, np.eye(logits.shape[1])[classes])
    for a, b in zip(sparse, dense, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_one_row_of_labels_serves_all_rows() -> None:
    """Logits and labels broadcast."""
    loss, gradient = check_shapes(
        "SoftmaxCrossEntropyWithLogits", np.zeros((3, 2), np.float32), np.array([[1, 0]], np.float32)
    )
    np.testing.assert_allclose(loss, [np.log(2)] * 3, rtol=1e-6)
    assert gradient.shape == (3, 2)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty_logits_give_empty_results(shape: tuple[int, int]) -> None:
    """No rows, or rows without classes."""
    empty = np.zeros(shape, np.float32)
    assert check_shapes("Softmax", empty).shape == shape
    loss, gradient = check_shapes("SoftmaxCrossEntropyWithLogits", empty, empty)
    assert loss.shape == shape[:1]
    assert gradient.shape == shape


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        ((2, 3), [3, 0], "Received a label value of 3 which is outside the valid range of [0, 3).  Label values: 3 0"),
        (
            (2, 3),
            [0],
            "logits and labels must have the same first dimension, got logits shape [2,3] and labels shape [1]",
        ),
        ((3,), [0], "logits must be 2-D, but got shape [3]"),
        ((2, 0), [0, 0], "Must have at least one class, but got logits shape [2,0]"),
        ((2, 3), [[0, 0]], "labels must be 1-D, but got shape [1,2]"),
    ],
)
def test_labels_that_do_not_fit_are_named(
    features: tuple[int, ...], labels: list[int] | list[list[int]], message: str
) -> None:
    """The message is TensorFlow's."""
    with pytest.raises(InvalidArgumentError) as caught:
        run("SparseSoftmaxCrossEntropyWithLogits", np.ones(features, np.float32), np.array(labels, np.int32))
    assert caught.value.message == message


def test_scalars_have_no_rows() -> None:
    """Softmax needs an axis of classes, cross entropy rows of them."""
    with pytest.raises(InvalidArgumentError, match="logits must have >= 1 dimension"):
        run("Softmax", np.float32(1))
    with pytest.raises(InvalidArgumentError, match="either 2-dimensional"):
        run("SoftmaxCrossEntropyWithLogits", np.ones(3, np.float32), np.ones(3, np.float32))


def test_labels_tell_what_logits_do_not() -> None:
    """Labels give the number of rows and, if dense, of classes."""
    assert shapes("SoftmaxCrossEntropyWithLogits", (None, 3), (2, None)) == [(2,), (2, 3)]
    assert shapes("SparseSoftmaxCrossEntropyWithLogits", (None, 3), np.array([1, 2], np.int32)) == [(2,), (2, 3)]
