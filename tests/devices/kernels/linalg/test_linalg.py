"""Decompositions multiply back to the matrix, solutions solve, and bad matrices are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.dtypes import Array, DataType, from_numpy
from tests.devices.kernels.draws import COMPLEX_TYPES, filled
from tests.devices.kernels.harness import check_shapes, run, shapes

TYPES = [np.dtype(np.float32), np.dtype(np.float64), *COMPLEX_TYPES]
BATCHES = st.sampled_from([(), (2,), (2, 1), (0,)])
SEEDS = st.integers(0, 999)


def close(actual: Array, expected: Array, dtype: np.dtype) -> None:
    """Equal up to what a few dozen roundings in `dtype` may cost."""
    limit = 2e-3 if dtype in (np.float32, np.complex64) else 1e-9
    np.testing.assert_allclose(actual, expected, rtol=limit, atol=limit)


def turned(x: Array) -> Array:
    """The conjugate transpose of each inner matrix."""
    return np.swapaxes(x.conj(), -1, -2)


def regular(dtype: np.dtype, batch: tuple[int, ...], seed: int, size: int = 4) -> Array:
    """Matrices far from singular: their diagonals dominate."""
    return np.asarray(filled(dtype, (*batch, size, size), seed, -1, 1) + (3 * np.eye(size)).astype(dtype))


def positive(dtype: np.dtype, batch: tuple[int, ...], seed: int) -> Array:
    """Self-adjoint matrices with eigenvalues of 1 and more."""
    a = filled(dtype, (*batch, 4, 4), seed, -1, 1)
    return (a @ turned(a) + np.eye(4)).astype(dtype)


@given(st.sampled_from(TYPES), BATCHES, SEEDS, st.booleans())
def test_inverses_and_solutions(dtype: np.dtype[Any], batch: tuple[int, ...], seed: int, adjoint: bool) -> None:
    """A A^-1 is the identity, A x is the right-hand side; of the conjugate transpose under `adjoint`."""
    a, b = regular(dtype, batch, seed), filled(dtype, (*batch, 4, 2), seed)
    used = turned(a) if adjoint else a
    close(used @ check_shapes("MatrixInverse", a, adjoint=adjoint), np.broadcast_to(np.eye(4), a.shape), dtype)
    close(used @ check_shapes("MatrixSolve", a, b, adjoint=adjoint), b, dtype)


@given(st.sampled_from(TYPES), BATCHES, SEEDS)
def test_determinants(dtype: np.dtype[Any], batch: tuple[int, ...], seed: int) -> None:
    """det(A A^H) = |det A|^2, and sign times exp of the logarithm is the determinant."""
    a = regular(dtype, batch, seed)
    value = check_shapes("MatrixDeterminant", a)
    close(run("MatrixDeterminant", (a @ turned(a)).astype(dtype)), np.abs(value) ** 2, dtype)
    sign, logarithm = check_shapes("LogMatrixDeterminant", a)
    close(sign * np.exp(logarithm), value, dtype)


@given(st.sampled_from(TYPES), BATCHES, SEEDS)
def test_factors_multiply_back(dtype: np.dtype[Any], batch: tuple[int, ...], seed: int) -> None:
    """Cholesky, LU with its row order, the square root; the eigenvalues of the logarithm are logarithms."""
    p, a = positive(dtype, batch, seed), regular(dtype, batch, seed)
    lower = check_shapes("Cholesky", p)
    close(lower @ turned(lower), p, dtype)
    np.testing.assert_array_equal(lower, np.tril(lower))
    both, rows = check_shapes("Lu", a, output_idx_type=DataType.INT64)
    product = (np.tril(both, -1) + np.eye(4, dtype=dtype)) @ np.triu(both)
    close(product, np.take_along_axis(a, rows[..., None], -2), dtype)
    root = check_shapes("MatrixSquareRoot", p)
    close(root @ root, p, dtype)
    if dtype.kind == "c":
        logarithm = check_shapes("MatrixLogarithm", p)
        close(np.exp(np.linalg.eigvalsh(logarithm)), np.linalg.eigvalsh(p), dtype)


@given(st.sampled_from(TYPES), BATCHES, SEEDS, st.booleans(), st.sampled_from([(3, 5), (5, 3), (4, 4)]))
def test_orthogonal_decompositions(
    dtype: np.dtype[Any], batch: tuple[int, ...], seed: int, full: bool, size: tuple[int, int]
) -> None:
    """QR and SVD give orthonormal columns and multiply back."""
    a = filled(dtype, (*batch, *size), seed)
    q, r = check_shapes("Qr", a, full_matrices=full)
    close(q @ r, a, dtype)
    close(turned(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*batch, q.shape[-1], q.shape[-1])), dtype)
    np.testing.assert_array_equal(r, np.triu(r))
    s, u, v = check_shapes("Svd", a, full_matrices=full)
    least = min(size)
    close((u[..., :least] * s[..., None, :]) @ turned(v[..., :least]), a, dtype)
    close(turned(v) @ v, np.broadcast_to(np.eye(v.shape[-1]), (*batch, v.shape[-1], v.shape[-1])), dtype)
    values, empty_u, empty_v = check_shapes("Svd", a, compute_uv=False)
    close(values, s, dtype)
    assert empty_u.size == empty_v.size == 0


@given(st.sampled_from(TYPES), BATCHES, SEEDS)
def test_eigenvectors_are_stretched(dtype: np.dtype[Any], batch: tuple[int, ...], seed: int) -> None:
    """A v = e v, for self-adjoint and for general matrices; without vectors the values are the same."""
    p, a = positive(dtype, batch, seed), regular(dtype, batch, seed)
    e, v = check_shapes("SelfAdjointEigV2", p)
    close(p @ v, v * e[..., None, :], dtype)
    close(check_shapes("SelfAdjointEigV2", p, compute_v=False)[0], e, dtype)
    complex_type = from_numpy(np.dtype(np.complex64 if dtype in (np.float32, np.complex64) else np.complex128))
    e, v = check_shapes("Eig", a, Tout=complex_type)
    close(a @ v, v * e[..., None, :], dtype)
    assert check_shapes("Eig", a, Tout=complex_type, compute_v=False)[1].size == 0


@given(SEEDS)
def test_the_gradient_of_cholesky_is_a_difference_quotient(seed: int) -> None:
    """Along any self-adjoint change of the matrix."""
    double = np.dtype(np.float64)
    p, grad, change = positive(double, (), seed), filled(double, (4, 4), seed), filled(double, (4, 4), seed + 1)
    change = change + change.T
    moved = (run("Cholesky", p + 1e-6 * change) - run("Cholesky", p - 1e-6 * change)) / 2e-6
    pulled = check_shapes("CholeskyGrad", run("Cholesky", p), grad)
    np.testing.assert_allclose((pulled * change).sum(), (grad * moved).sum(), rtol=1e-5, atol=1e-6)


@given(
    st.sampled_from(TYPES), SEEDS, st.booleans(), st.booleans(), st.sampled_from([((), ()), ((2,), ()), ((1,), (3,))])
)
def test_triangular_solutions(
    dtype: np.dtype[Any], seed: int, lower: bool, adjoint: bool, batches: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    """Of a triangle of the matrix, or of bands; leading axes broadcast; the other triangle is not read."""
    a, b = regular(dtype, batches[0], seed), filled(dtype, (*batches[1], 4, 2), seed)
    triangle = np.tril(a) if lower else np.triu(a)
    used = turned(triangle) if adjoint else triangle
    x = check_shapes("MatrixTriangularSolve", a, b, lower=lower, adjoint=adjoint)
    close(used @ x, np.broadcast_to(b, x.shape), dtype)
    offsets = range(3) if lower else range(2, -1, -1)
    bands = np.zeros((*batches[0], 3, 4), dtype)
    banded = np.zeros_like(a)
    for band, offset in enumerate(offsets):
        row = np.arange(offset, 4) if lower else np.arange(4 - offset)
        column = row - offset if lower else row + offset
        bands[..., band, row] = a[..., row, column]
        banded[..., row, column] = a[..., row, column]
    x = check_shapes("BandedTriangularSolve", bands, b, lower=lower, adjoint=adjoint)
    close((turned(banded) if adjoint else banded) @ x, np.broadcast_to(b, x.shape), dtype)


@given(st.sampled_from(TYPES), BATCHES, SEEDS)
def test_tridiagonal_matrices(dtype: np.dtype[Any], batch: tuple[int, ...], seed: int) -> None:
    """Solving undoes multiplying."""
    diagonals, x = filled(dtype, (*batch, 3, 4), seed, -1, 1), filled(dtype, (*batch, 4, 2), seed)
    diagonals[..., 1, :] += dtype.type(4)
    above, main, below = (diagonals[..., i : i + 1, :] for i in range(3))
    product = check_shapes("TridiagonalMatMul", above, main, below, x)
    close(check_shapes("TridiagonalSolve", diagonals, product), x, dtype)


@given(st.sampled_from(TYPES), BATCHES, SEEDS, st.sampled_from([(5, 3), (3, 5)]))
def test_least_squares(dtype: np.dtype[Any], batch: tuple[int, ...], seed: int, size: tuple[int, int]) -> None:
    """The slow way gives the pseudo-inverse's solution, the fast one approaches it as the regulariser vanishes."""
    a, b = filled(dtype, (*batch, *size), seed), filled(dtype, (*batch, size[0], 2), seed + 1)
    exact = np.linalg.pinv(a) @ b
    close(check_shapes("MatrixSolveLs", a, b, np.float64(0), fast=False), exact, dtype)
    if np.all(np.linalg.cond(a) < 10):
        close(check_shapes("MatrixSolveLs", a, b, np.float64(0), fast=True), exact, dtype)
    ridge = check_shapes("MatrixSolveLs", a, b, np.float64(0.5), fast=True)
    close(turned(a) @ (a @ ridge - b) + dtype.type(0.5) * ridge, np.zeros_like(ridge), dtype)


ZERO = np.zeros((2, 2), np.float32)
ONES = np.ones((3, 2), np.float32)
SYMMETRIC = np.array([[2, 1], [1, 3]], np.float32)


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("MatrixInverse", (ZERO,), "Input is not invertible."),
        ("MatrixInverse", (SYMMETRIC * np.float32(np.nan),), "Input is not invertible."),
        ("Lu", (ZERO,), "Input is not invertible."),
        ("MatrixSolve", (ZERO, SYMMETRIC), "Input matrix is not invertible."),
        ("MatrixSolve", (SYMMETRIC, ONES), "Input matrix and rhs are incompatible."),
        ("MatrixSolve", (SYMMETRIC[None], SYMMETRIC), "All input tensors must have the same outer dimensions."),
        ("BandedTriangularSolve", (ZERO, SYMMETRIC), "Input matrix is not invertible."),
        ("SelfAdjointEigV2", (SYMMETRIC * np.float32(np.nan),), "Self-adjoint eigen decomposition was not successful."),
        ("MatrixDeterminant", (ONES,), "Input matrix must be square."),
        ("Cholesky", (np.ones(3),), "Input tensor 0 must have rank >= 2, got 1"),
        ("MatrixTriangularSolve", (SYMMETRIC, ONES), "In[0] mismatch In[1] shape: 2 vs. 3: [2,2] [3,2] 1 0"),
        ("TridiagonalSolve", (SYMMETRIC, SYMMETRIC), "Expected diagonals to be provided as a matrix with 3 rows"),
        (
            "TridiagonalSolve",
            (ONES, ONES),
            "Expected the same number of left-hand sides and right-hand sides, got 2 and 3",
        ),
        ("MatrixSolveLs", (np.ones((3, 2)), np.ones((3, 1)), np.float64(0)), "Input matrix was rank deficient"),
        ("MatrixSolveLs", (ONES, ONES, np.float64(-1)), "l2_regularizer must be >= 0."),
    ],
)
def test_bad_matrices_are_named(op: str, inputs: tuple[Array, ...], message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError) as error:
        run(op, *inputs)
    assert message in error.value.message


def test_what_has_no_factor_is_nan() -> None:
    """A matrix that is not positive definite, has no real square root, or a singular tridiagonal one."""
    assert np.isnan(np.tril(run("Cholesky", ZERO))[np.tril_indices(2)]).all()
    assert np.isnan(run("MatrixSquareRoot", np.diag(np.array([-1, 4], np.float32)))).all()
    assert np.isnan(run("TridiagonalSolve", np.zeros((3, 3)), np.ones((3, 1)))).all()
    assert run("LogMatrixDeterminant", ZERO) == (0, -np.inf)
    with pytest.raises(UnimplementedError, match="perturb_singular"):
        run("TridiagonalSolve", np.ones((3, 3)), np.ones((3, 1)), perturb_singular=True)


def test_sizes_that_must_agree_tell_each_other() -> None:
    """Unknown ones are taken from known ones; a clash is an error."""
    assert shapes("MatrixInverse", (None, 3, None)) == [(None, 3, 3)]
    assert shapes("MatrixSolve", (None, 4, 4), (2, None, 5)) == [(2, 4, 5)]
    assert shapes("TridiagonalSolve", (3, None), (4, 1)) == [(4, 1)]
    assert shapes("Qr", None) == [None, None]
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 2 and 3"):
        shapes("MatrixDeterminant", (2, 3))
    with pytest.raises(InvalidArgumentError, match="Shape must be at least rank 2 but is rank 1"):
        shapes("Cholesky", (2,))
