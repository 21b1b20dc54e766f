"""Single small matrices, straight to LAPACK and BLAS: the wrappers of numpy take ten times as long as a few rows do.

    numpy.linalg.qr      checks, copies, two calls of LAPACK, `triu`     40 us
    geqrf and orgqr      two calls                                        4 us

The routines are scipy's, which hold Python's lock while they run: larger matrices, and stacks of many, are left to
numpy, where the wrappers do not matter.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from ..blas_threads import LIMIT

LARGE = 1 << 12
"""numbers of a matrix from which on numpy computes it"""
_PREFIXES = {"f": "s", "d": "d", "F": "c", "D": "z"}

Routine = Callable[..., Any]
"""takes and returns what scipy says; results lie column by column"""


@cache
def routine(name: str, dtype: np.dtype[Any]) -> Routine:
    """LAPACK's or BLAS's routine for a type that it computes in, on one thread; scipy is imported on the first call."""
    module = "scipy.linalg.blas" if name == "trsm" else "scipy.linalg.lapack"
    function = getattr(importlib.import_module(module), _PREFIXES[dtype.char] + name)
    LIMIT.forget_libraries()  # scipy has brought its own

    return partial(LIMIT.run, function)


def is_of_lapack(dtype: np.dtype[Any]) -> bool:
    """Whether LAPACK computes in a type: not in half types."""
    return dtype.char in _PREFIXES


def is_small_matrix(x: Array) -> bool:
    """Whether `x` is a single matrix that is small, not empty, and of a type for LAPACK."""
    return x.ndim == 2 and 0 < x.size < LARGE and x.dtype.char in _PREFIXES


@lru_cache(64)
def _on_or_above_diagonal(rows: int, columns: int) -> Array:
    return np.tri(rows, columns, -1, np.bool_) ^ True


def upper_triangle(x: Array) -> Array:
    """The upper triangle of a small matrix, with zeros below."""
    return np.where(_on_or_above_diagonal(*x.shape), x, x.dtype.type(0))


def orthogonal_factors(x: Array, *, full: bool) -> tuple[Array, Array]:
    """Q and R of a small matrix; Q square if `full`."""
    rows, columns = x.shape
    reflectors, scales, _, _ = routine("geqrf", x.dtype)(x)
    width = rows if full else min(rows, columns)
    r = upper_triangle(reflectors[:width])
    if width > columns:
        wide = np.zeros((rows, width), x.dtype, order="F")
        wide[:, :columns] = reflectors
        reflectors = wide
    q, _, _ = routine("ungqr" if x.dtype.kind == "c" else "orgqr", x.dtype)(reflectors[:, :width], scales)
    return np.ascontiguousarray(q), np.ascontiguousarray(r)


def singular_values(x: Array, *, full: bool, vectors: bool) -> tuple[Array, Array, Array] | None:
    """U, s and V^H of a small matrix; U and V mean nothing without `vectors`. None where LAPACK does not converge."""
    u, s, vh, info = routine("gesdd", x.dtype)(x, compute_uv=vectors, full_matrices=full)
    return None if info else (np.ascontiguousarray(u), s, np.ascontiguousarray(vh))


def cholesky_factor(x: Array) -> Array | None:
    """The lower factor of a small matrix, from its lower triangle; None if it is not positive definite."""
    factor, info = routine("potrf", x.dtype)(x, lower=1)
    return None if info else np.ascontiguousarray(factor)


def eigenvectors(x: Array, *, vectors: bool) -> tuple[Array, Array] | None:
    """Ascending eigenvalues of a small Hermitian matrix, from its lower triangle, and eigenvectors as columns.

    The latter mean nothing without `vectors`. None where LAPACK does not converge.
    """
    name = "heevd" if x.dtype.kind == "c" else "syevd"
    values, columns, info = routine(name, x.dtype)(x, compute_v=vectors, lower=1)
    return None if info else (values, np.ascontiguousarray(columns))


def solution(matrix: Array, rhs: Array) -> Array | None:
    """x with matrix x = rhs for a small matrix; None if it is singular."""
    _, _, x, info = routine("gesv", rhs.dtype)(matrix, rhs)
    return None if info else np.ascontiguousarray(x)
