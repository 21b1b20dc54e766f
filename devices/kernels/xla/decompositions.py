"""Eigenvalues and singular values in XLA's form; LAPACK computes them, so the attrs for iterations have no effect.

The signs of vectors may differ from XLA's, as those of two LAPACKs do. Where LAPACK finds nothing, all is NaN.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..blas_threads import one_blas_thread
from ..checks import require
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel


@kernel("XlaSelfAdjointEig")
@one_blas_thread
def self_adjoint_eig(node: Construction) -> Kernel:
    """Eigenvalues [..., n], smallest first, and eigenvectors [..., n, n] as columns; reads one triangle."""
    triangle: Literal["L", "U"] = "L" if node.attrs["lower"] else "U"

    def decompose(a: Array) -> tuple[Array, Array]:
        require(a.ndim >= 2 and a.shape[-1] == a.shape[-2], f"Arguments to eigen must be square: {shape_text(a.shape)}")
        try:
            values, vectors = np.linalg.eigh(a, triangle)
        except np.linalg.LinAlgError:  # NaN among the numbers
            values, vectors = np.full(a.shape[:-1], np.nan), np.full_like(a, np.nan)
        return values.astype(a.dtype), vectors

    return in_float32(decompose, node.output_types[0])


@kernel("XlaSvd")
@one_blas_thread
def svd(node: Construction) -> Kernel:
    """Singular values [..., min(m, n)], largest first, u [..., m, m] and v [..., n, n]: a = u diag(s) v'."""

    def decompose(a: Array) -> tuple[Array, Array, Array]:
        require(a.ndim >= 2, f"Arguments to SVD must have rank at least 2: {shape_text(a.shape)}")
        require(a.size > 0, f"Arguments to SVD must have elements: {shape_text(a.shape)}")
        try:
            u, values, v = np.linalg.svd(a, full_matrices=True)
        except np.linalg.LinAlgError:  # NaN among the numbers
            u, values, v = (np.full(x.shape, np.nan, a.dtype) for x in np.linalg.svd(np.zeros_like(a)))
        return values.astype(a.dtype), u, np.conj(np.swapaxes(v, -1, -2))

    return in_float32(decompose, node.output_types[0])
