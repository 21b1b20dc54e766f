"""Eigenvalues and singular values in XLA's form; LAPACK computes them, so the attrs for iterations have no effect.

The signs of vectors may differ from XLA's, as those of two LAPACKs do.
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
        values, vectors = np.linalg.eigh(a, triangle)
        return values.astype(a.dtype), vectors

    return in_float32(decompose, node.output_types[0])


@kernel("XlaSvd")
@one_blas_thread
def svd(node: Construction) -> Kernel:
    """Singular values [..., min(m, n)], largest first, u [..., m, m] and v [..., n, n]: a = u diag(s) v'."""

    def decompose(a: Array) -> tuple[Array, Array, Array]:
        require(a.ndim >= 2, f"Arguments to SVD must have rank at least 2: {shape_text(a.shape)}")
        u, values, v = np.linalg.svd(a, full_matrices=True)
        return values.astype(a.dtype), u, np.conj(np.swapaxes(v, -1, -2))

    return in_float32(decompose, node.output_types[0])
