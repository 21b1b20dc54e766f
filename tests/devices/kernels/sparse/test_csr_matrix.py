"""Sparse matrices by rows compute what dense ones do; the values of examples are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run

FLOAT = DataType.FLOAT
INDICES = np.array([[0, 1], [0, 3], [2, 0]])
VALUES = np.array([1, 2, 3], np.float32)
SEEDS = st.integers(0, 99)


def matrix(indices: Any = INDICES, values: Array = VALUES, shape: Any = (3, 4)) -> Array:
    result: Array = check_shapes("SparseTensorToCSRSparseMatrix", np.array(indices), values, np.array(shape))
    return result


def dense(value: Array) -> Array:
    result: Array = check_shapes("CSRSparseMatrixToDense", value, type=FLOAT)
    return result


def components(value: Array, index: int = 0) -> list[Any]:
    """Row pointers, columns and values, as Python numbers."""
    parts = check_shapes("CSRSparseMatrixComponents", value, np.int32(index), type=FLOAT)
    return [part.tolist() for part in parts]


def random_dense(seed: int, *shape: int) -> Array:
    """Small whole numbers, most of them zero."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-3, 4, shape) * (rng.random(shape) < 0.4)).astype(np.float32)


def sparse(x: Array) -> Array:
    """The matrix with the elements of `x` that are not zero."""
    indices = np.argwhere(x)
    result: Array = check_shapes("DenseToCSRSparseMatrix", x, indices)
    return result


@given(SEEDS, st.sampled_from([(3, 4), (2, 3, 4), (2, 0)]))
def test_conversions_lose_nothing(seed: int, shape: tuple[int, ...]) -> None:
    """From dense to sparse and back, by way of a sparse tensor in any order."""
    x = random_dense(seed, *shape)
    np.testing.assert_array_equal(dense(sparse(x)), x)
    indices, values, sizes = check_shapes("CSRSparseMatrixToSparseTensor", sparse(x), type=FLOAT)
    assert sizes.tolist() == list(shape)
    np.testing.assert_array_equal(indices, np.argwhere(x))
    mixed = np.random.default_rng(seed).permutation(len(values))
    np.testing.assert_array_equal(dense(matrix(indices[mixed], values[mixed], shape)), x)
    counts = check_shapes("SparseMatrixNNZ", sparse(x))
    np.testing.assert_array_equal(counts, np.count_nonzero(x, axis=(-2, -1)))


@given(SEEDS, *[st.booleans()] * 5)
def test_products(seed: int, batched: bool, turn_a: bool, turn_b: bool, adjoint: bool, turn_result: bool) -> None:
    """With dense and with sparse matrices, either of them transposed."""
    batch = (2,) if batched else ()
    a, b = random_dense(seed, *batch, 3, 4), random_dense(seed + 1, *batch, 4, 2)
    left, right = (np.swapaxes(a, -1, -2) if turn_a else a), (np.swapaxes(b, -1, -2) if turn_b else b)
    kind = "adjoint" if adjoint else "transpose"
    turns = {f"{kind}_a": turn_a, f"{kind}_b": turn_b}
    got = check_shapes("SparseMatrixMatMul", sparse(left), right, transpose_output=turn_result, **turns)
    np.testing.assert_array_equal(np.swapaxes(got, -1, -2) if turn_result else got, a @ b)
    product = check_shapes("SparseMatrixSparseMatMul", sparse(left), sparse(right), type=FLOAT, **turns)
    np.testing.assert_array_equal(dense(product), a @ b)


def test_a_product_without_columns() -> None:
    """It has the rows of the sparse matrix, also in a batch."""
    for batch in ((), (2,)):
        a = np.ones((*batch, 3, 4), np.float32)
        assert run("SparseMatrixMatMul", sparse(a), np.zeros((*batch, 4, 0), np.float32)).shape == (*batch, 3, 0)


@given(SEEDS)
def test_sums_multiples_and_transposes(seed: int) -> None:
    """Element by element as dense matrices."""
    a, b = random_dense(seed, 3, 4), random_dense(seed + 1, 3, 4)
    two, three = np.float32(2), np.float32(-3)
    np.testing.assert_array_equal(
        dense(check_shapes("SparseMatrixAdd", sparse(a), sparse(b), two, three)), 2 * a - 3 * b
    )
    np.testing.assert_array_equal(dense(check_shapes("SparseMatrixMul", sparse(a), two)), 2 * a)
    np.testing.assert_array_equal(dense(check_shapes("SparseMatrixTranspose", sparse(a), type=FLOAT)), a.T)
    assert not dense(check_shapes("SparseMatrixZeros", np.array([3, 4]), type=FLOAT)).any()


def test_a_softmax_is_that_of_the_elements_there_are() -> None:
    """An element that a row lacks counts as minus infinity."""
    got = dense(check_shapes("SparseMatrixSoftmax", matrix(), type=FLOAT))
    weights = np.exp([1.0, 2.0])
    np.testing.assert_allclose(got[0], [0, *weights[:1] / weights.sum(), 0, *weights[1:] / weights.sum()], rtol=1e-6)
    assert got[1:].tolist() == [[0] * 4, [1, 0, 0, 0]]


def test_components() -> None:
    """Products and transposes have the elements that TensorFlow's have; a batch has one matrix after the other."""
    assert components(matrix()) == [[0, 2, 2, 3], [1, 3, 0], [1, 2, 3]]
    turned = run("SparseMatrixTranspose", matrix(), type=FLOAT)
    assert components(turned) == [[0, 1, 2, 2, 3], [2, 0, 0], [3, 1, 2]]
    product = run("SparseMatrixSparseMatMul", matrix(), turned, type=FLOAT)
    assert components(product) == [[0, 1, 1, 2], [0, 2], [5, 9]]
    batch = matrix([[0, 0, 1], [1, 0, 0], [1, 1, 1]], VALUES, (2, 2, 2))
    assert components(batch, 1) == [[0, 1, 2], [0, 1], [2, 3]]


def test_cholesky_factors() -> None:
    """The lower triangle is read; rows and columns are permuted before."""
    a = matrix([[0, 0], [1, 0], [1, 1], [2, 2]], np.array([4, 1, 3, 2], np.float32), (3, 3))
    lower = run("SparseMatrixSparseCholesky", a, np.array([0, 1, 2], np.int32), type=FLOAT)
    pointers, columns, values = components(lower)
    assert (pointers, columns) == ([0, 1, 3, 4], [0, 0, 1, 2])
    np.testing.assert_allclose(values, [2, 0.5, 1.6583124, 1.4142135], rtol=1e-6)
    lower = run("SparseMatrixSparseCholesky", a, np.array([2, 1, 0], np.int32), type=FLOAT)
    expected = [[1.4142135, 0, 0], [0, 1.7320508, 0], [0, 0.57735026, 1.9148543]]
    np.testing.assert_allclose(dense(lower), expected, rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match="Sparse Cholesky factorization failed!"):
        run("SparseMatrixSparseCholesky", sparse(-np.eye(2, dtype=np.float32)), np.array([0, 1], np.int32), type=FLOAT)


def test_what_is_refused() -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=r"Sparse index tuple indices\[1, :\] = \[0, 3\] is out of bounds"):
        matrix(shape=(3, 2))
    with pytest.raises(InvalidArgumentError, match="SparseTensor must have rank 2 or 3; but indices has rank: 1"):
        matrix([[0], [1], [2]], shape=(3,))
    with pytest.raises(InvalidArgumentError, match="Asked for a CSRSparseMatrix of type double but saw dtype: float"):
        run("CSRSparseMatrixToDense", matrix(), type=DataType.DOUBLE)
    with pytest.raises(InvalidArgumentError, match=r"index \(1\) not in \[0, 1\)"):
        components(matrix(), 1)
    with pytest.raises(InvalidArgumentError, match=r"of A and B do not agree\. Shapes are: \[3,4\] vs\. \[3,2\]"):
        run("SparseMatrixMatMul", matrix(), np.ones((3, 2), np.float32))
    with pytest.raises(InvalidArgumentError, match=r"Only one of adjoint_a and transpose_a may be true\."):
        run("SparseMatrixMatMul", matrix(), np.ones((3, 2), np.float32), transpose_a=True, adjoint_a=True)
    with pytest.raises(InvalidArgumentError, match=r"do not agree\.  Shapes are: \[3,4\] vs\. \[3,4\]"):
        run("SparseMatrixSparseMatMul", matrix(), matrix(), type=FLOAT)
