"""Inverses invert, determinants multiply, and bad matrices are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.dtypes import Array
from tests.devices.kernels.draws import filled
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.linalg.matrices import BATCHES, SEEDS, TYPES, close, regular, turned


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
    """The error has TensorFlow's words."""
    with pytest.raises(InvalidArgumentError) as error:
        run(op, *inputs)
    assert message in error.value.message


def test_what_has_no_factor_is_nan() -> None:
    """A matrix that is not positive definite, one without real square root, a singular tridiagonal one."""
    assert np.isnan(np.tril(run("Cholesky", ZERO))[np.tril_indices(2)]).all()
    assert np.isnan(run("MatrixSquareRoot", np.diag(np.array([-1, 4], np.float32)))).all()
    assert np.isnan(run("TridiagonalSolve", np.zeros((3, 3)), np.ones((3, 1)))).all()
    assert run("LogMatrixDeterminant", ZERO) == (0, -np.inf)
    with pytest.raises(UnimplementedError, match="perturb_singular"):
        run("TridiagonalSolve", np.ones((3, 3)), np.ones((3, 1)), perturb_singular=True)


def test_sizes_that_must_agree_tell_each_other() -> None:
    """A known size gives an unknown one; different ones are an error."""
    assert shapes("MatrixInverse", (None, 3, None)) == [(None, 3, 3)]
    assert shapes("MatrixSolve", (None, 4, 4), (2, None, 5)) == [(2, 4, 5)]
    assert shapes("TridiagonalSolve", (3, None), (4, 1)) == [(4, 1)]
    assert shapes("Qr", None) == [None, None]
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 2 and 3"):
        shapes("MatrixDeterminant", (2, 3))
    with pytest.raises(InvalidArgumentError, match="Shape must be at least rank 2 but is rank 1"):
        shapes("Cholesky", (2,))


def test_first_names_of_ops_on_batches() -> None:
    """Graphs before version 13 have an op of its own for a batch of matrices."""
    a = np.array([[[2.0, 1.0], [1.0, 3.0]]])
    for name in ("MatrixInverse", "MatrixDeterminant", "Cholesky"):
        np.testing.assert_array_equal(check_shapes(f"Batch{name}", a), run(name, a))
    np.testing.assert_array_equal(run("BatchMatrixSolve", a, a), run("MatrixSolve", a, a))
    np.testing.assert_array_equal(run("BatchSelfAdjointEigV2", a)[0], run("SelfAdjointEigV2", a)[0])
    for name in ("SelfAdjointEig", "BatchSelfAdjointEig"):
        values, vectors = run("SelfAdjointEigV2", a)
        np.testing.assert_array_equal(check_shapes(name, a), np.concatenate([values[:, None], vectors], 1))
        assert run(name, np.zeros((2, 0, 0))).shape == (2, 1, 0)
        with pytest.raises(InvalidArgumentError, match="Self Adjoint Eigen decomposition wasnot successful"):
            run(name, a * np.nan)
    assert shapes("SelfAdjointEig", (None, 3, None)) == [(None, 4, 3)]
    np.testing.assert_array_equal(run("BatchMatrixDiagPart", a), [[2, 3]])
    np.testing.assert_array_equal(run("BatchMatrixBandPart", a, np.int64(0), np.int64(-1)), np.triu(a))


def test_the_exponential_of_a_turn() -> None:
    """exp of [[0, t], [-t, 0]] turns by t."""
    turned = check_shapes("MatrixExponential", np.array([[0.0, 0.5], [-0.5, 0.0]]))
    np.testing.assert_allclose(turned, [[np.cos(0.5), np.sin(0.5)], [-np.sin(0.5), np.cos(0.5)]])
