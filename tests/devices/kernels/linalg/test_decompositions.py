"""Factors multiply back to the matrix they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from partita.graph.dtypes import DataType, from_numpy
from tests.devices.kernels.draws import filled
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.linalg.matrices import BATCHES, SEEDS, TYPES, close, positive, regular, turned


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
