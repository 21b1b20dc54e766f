"""Matrices of three diagonals are what the whole matrices are."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from tests.devices.kernels.draws import filled
from tests.devices.kernels.harness import check_shapes
from tests.devices.kernels.linalg.matrices import BATCHES, SEEDS, TYPES, close


@given(st.sampled_from(TYPES), BATCHES, SEEDS)
def test_tridiagonal_matrices(dtype: np.dtype[Any], batch: tuple[int, ...], seed: int) -> None:
    """Solving undoes multiplying."""
    diagonals, x = filled(dtype, (*batch, 3, 4), seed, -1, 1), filled(dtype, (*batch, 4, 2), seed)
    diagonals[..., 1, :] += dtype.type(4)
    above, main, below = (diagonals[..., i : i + 1, :] for i in range(3))
    product = check_shapes("TridiagonalMatMul", above, main, below, x)
    close(check_shapes("TridiagonalSolve", diagonals, product), x, dtype)
