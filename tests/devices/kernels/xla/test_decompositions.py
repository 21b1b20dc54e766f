"""Factors multiply to what was decomposed."""

from __future__ import annotations

import numpy as np

from tests.devices.kernels.harness import check_shapes

PRECISION = {"max_iter": 100, "epsilon": 1e-6}


def test_eigenvectors_of_one_triangle() -> None:
    """Only the named triangle is read; eigenvalues rise."""
    a = np.random.default_rng(0).normal(size=(2, 4, 4))
    for lower in (True, False):
        values, vectors = check_shapes("XlaSelfAdjointEig", a, lower=lower, **PRECISION)
        half = np.tril(a, -1) if lower else np.triu(a, 1)
        whole = half + np.swapaxes(half, 1, 2) + np.eye(4) * a
        np.testing.assert_allclose(vectors * values[:, None] @ np.swapaxes(vectors, 1, 2), whole, atol=1e-12)
        assert (np.diff(values) >= 0).all()


def test_singular_vectors_are_square() -> None:
    """u and v have all columns; singular values fall."""
    a = np.random.default_rng(0).normal(size=(4, 2))
    values, u, v = check_shapes("XlaSvd", a, precision_config="", **PRECISION)
    assert (u.shape, v.shape) == ((4, 4), (2, 2))
    np.testing.assert_allclose(u[:, :2] * values @ v.T, a, atol=1e-12)
    assert values[0] >= values[1]
