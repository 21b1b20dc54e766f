"""Kernels on tridiagonal matrices: systems of equations and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel, simple
from .inner_matrices import by_matrix, require_matrices, scipy_linalg


@kernel("TridiagonalSolve")
def solve_tridiagonal(node: Construction) -> Kernel:
    """x with A x = rhs, A given by its three diagonals; NaN where A is singular.

    Diagonals [..., 3, n]: above (last unused), main, below (first unused).
    """
    if node.attrs["perturb_singular"]:
        raise UnimplementedError("TridiagonalSolve with perturb_singular is not supported; set it to false")
    solve_bands, dtype = scipy_linalg("solve_banded"), numpy_dtype(node.output_types[0])

    def solve_matrix(diagonals: Array, rhs: Array) -> Any:
        bands = np.array(diagonals)
        bands[0, 1:], bands[2, :-1] = diagonals[0, :-1], diagonals[2, 1:]  # the positions that LAPACK expects
        bands[0, 0] = bands[2, -1] = 0
        try:
            return solve_bands((1, 1), bands, rhs, check_finite=False)
        except np.linalg.LinAlgError:
            return np.full_like(rhs, np.nan)

    def solved(diagonals: Array, rhs: Array) -> Array:
        require_matrices(diagonals)
        require_matrices(rhs, 1)
        rows, size = diagonals.shape[-2:]
        require(rows == 3, f"Expected diagonals to be provided as a matrix with 3 rows, got {rows} rows.")
        batches = f"got {shape_text(diagonals.shape)} and {shape_text(rhs.shape)}"
        require(diagonals.shape[:-2] == rhs.shape[:-2], f"Batch shapes of diagonals and right-hand sides, {batches}")
        if size != rhs.shape[-2]:
            raise InvalidArgumentError(
                f"Expected the same number of left-hand sides and right-hand sides, got {size} and {rhs.shape[-2]}."
            )
        result = np.empty(rhs.shape, dtype)
        return by_matrix(solve_matrix, result, diagonals, rhs) if result.size else result

    return solved


def _multiply_tridiagonal(above: Array, main: Array, below: Array, rhs: Array) -> Array:
    """A rhs for A given by three diagonals [..., 1, n]: above (last unused), main, below (first unused)."""
    for i, tensor in enumerate((above, main, below, rhs)):
        require_matrices(tensor, i)
    batch, size = rhs.shape[:-2], rhs.shape[-2]
    for name, diagonal in (("superdiag", above), ("maindiag", main), ("subdiag", below)):
        what = f"{name} must have shape {shape_text((*batch, 1, size))}, got {shape_text(diagonal.shape)}"
        require(diagonal.shape == (*batch, 1, size), what)
    above, main, below = (np.swapaxes(diagonal, -1, -2) for diagonal in (above, main, below))
    result: Array = main * rhs
    result[..., :-1, :] += above[..., :-1, :] * rhs[..., 1:, :]
    result[..., 1:, :] += below[..., 1:, :] * rhs[..., :-1, :]
    return result


simple("TridiagonalMatMul", _multiply_tridiagonal)
