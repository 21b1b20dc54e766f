"""Softmax is a distribution over its row; cross entropies and their gradients follow from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
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


@pytest.mark.parametrize("rows", [3, 2000])
def test_logits_in_any_memory_order_have_the_same_entropy(rows: int) -> None:
    """Few and many of them."""
    logits = np.random.default_rng(0).normal(size=(rows, 7)).astype(np.float32)
    classes = np.arange(rows) % 7
    for got, expected in zip(
        run("SparseSoftmaxCrossEntropyWithLogits", np.asfortranarray(logits), classes),
        run("SparseSoftmaxCrossEntropyWithLogits", logits, classes),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


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


@pytest.mark.parametrize(
    ("classes", "of_classes", "of_rows"),
    [
        (
            3,
            [
                0x3FA0CFC0,
                0x3F8CB3FE,
                0x3F8255CF,
                0x3F96279D,
                0x3F8CB554,
                0x3F854297,
                0x3F93C317,
                0x3F8CB027,
                0x3F8694A9,
            ],
            [
                0x3FA0CFC0,
                0x3F8CB3FE,
                0x3F8255CF,
                0x3F96279D,
                0x3F8CB554,
                0x3F854297,
                0x3F93C316,
                0x3F8CB028,
                0x3F8694A9,
            ],
        ),
        (
            10,
            [
                0x40382C14,
                0x400A5ED2,
                0x40154E7E,
                0x401D2B84,
                0x400B8D74,
                0x4012847E,
                0x4018812D,
                0x400B6AD7,
                0x4010F215,
            ],
            [
                0x40382C14,
                0x400A5ED2,
                0x40154E7E,
                0x401D2B84,
                0x400B8D74,
                0x4012847E,
                0x4018812D,
                0x400B6AD7,
                0x4010F215,
            ],
        ),
    ],
)
def test_losses_of_few_classes_have_tensorflows_bits(classes: int, of_classes: list[int], of_rows: list[int]) -> None:
    """What TensorFlow 2.21 gives for class numbers and for the rows of labels that they stand for."""
    logits = (np.sqrt(np.arange(2, 9 * classes + 2, dtype=np.float64)) / 2).astype(np.float32).reshape(9, classes)
    numbers = np.arange(9, dtype=np.int32) * 7 % classes
    sparse, _ = run("SparseSoftmaxCrossEntropyWithLogits", logits, numbers)
    dense, gradient = run("SoftmaxCrossEntropyWithLogits", logits, np.eye(classes, dtype=np.float32)[numbers])
    assert sparse.view(np.uint32).tolist() == of_classes
    assert dense.view(np.uint32).tolist() == of_rows
    if classes == 10:
        assert gradient[0].view(np.uint32).tolist() == [
            *(0xBF7198A5, 0x3D8713CA, 0x3D9A7147, 0x3DADCA9A, 0x3DC15CCE),
            *(0x3DD54CAE, 0x3DE9B307, 0x3DFEA1F4, 0x3E0A13C9, 0x3E1527B9),
        ]


@given(st.integers(1, 40), st.integers(1, 300), st.integers(0, 99))
def test_losses_in_float32_are_near_those_in_float64(classes: int, rows: int, seed: int) -> None:
    """Of short rows and long ones, few and many."""
    draws = np.random.default_rng(seed)
    logits, numbers = draws.normal(size=(rows, classes)) * 5, draws.integers(0, classes, rows)
    for op, labels in (
        ("SparseSoftmaxCrossEntropyWithLogits", numbers),
        ("SoftmaxCrossEntropyWithLogits", np.eye(classes)[numbers]),
    ):
        narrow = [x.astype(np.float32) if x.dtype == np.float64 else x for x in (logits, labels)]
        for ours, exact in zip(run(op, *narrow), run(op, logits, labels), strict=True):
            np.testing.assert_allclose(ours, exact, rtol=1e-5, atol=1e-5)
