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
