"""Solutions of linear systems, put in again."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from tests.devices.kernels.draws import filled
from tests.devices.kernels.harness import check_shapes
from tests.devices.kernels.linalg.matrices import BATCHES, SEEDS, TYPES, close, regular, turned


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


@given(st.sampled_from(TYPES), st.sampled_from([2, 5, 33, 64, 70, 130]), SEEDS, st.booleans(), st.data())
def test_a_zero_on_the_diagonal_spoils_only_what_depends_on_it(
    dtype: np.dtype[Any], size: int, seed: int, lower: bool, data: st.DataObject
) -> None:
    """The rows solved before it are right, its own and later ones not finite; the other triangle is not read."""
    matrix = filled(dtype, (size, size), seed) / dtype.type(size) + 2 * np.eye(size, dtype=dtype)
    rhs = filled(dtype, (size, 3), seed + 1) + dtype.type(9)
    zero = data.draw(st.integers(0, size - 1))
    matrix[zero, zero] = 0
    matrix[np.triu_indices(size, 1) if lower else np.tril_indices(size, -1)] = np.nan
    before = slice(0, zero) if lower else slice(zero + 1, size)
    x = check_shapes("MatrixTriangularSolve", matrix, rhs, lower=lower, adjoint=False)
    triangle = np.nan_to_num(matrix[before, before])
    close(triangle @ x[before], rhs[before], dtype)
    assert not np.isfinite(np.delete(x, before, 0)).any()


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
