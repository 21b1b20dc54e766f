"""Shared parts of kernels on inner matrices: checks of ranks, the adjoint, a loop over the matrices."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from ..blas_threads import LIMIT
from ..checks import require

NOT_INVERTIBLE = "Input is not invertible."


def require_matrices(x: Array, index: int = 0) -> None:
    """InvalidArgumentError unless `x`, input `index` of the op, has at least two axes."""
    require(x.ndim >= 2, f"Input tensor {index} must have rank >= 2, got {x.ndim}")


def require_square(x: Array, index: int = 0) -> None:
    """InvalidArgumentError unless `x`, input `index` of the op, holds square matrices."""
    require_matrices(x, index)
    require(x.shape[-1] == x.shape[-2], "Input matrix must be square.")


def has_nan(x: Array) -> bool:
    """Whether an element is NaN: `np.isnan(x).any()` without a wrapper that takes as long as the work."""
    return bool(np.logical_or.reduce(np.isnan(x), None))


def adjoint(x: Array) -> Array:
    """The conjugate transpose of each inner matrix."""
    turned = np.swapaxes(x, -1, -2)
    return np.conjugate(turned) if x.dtype.kind == "c" else turned


def scipy_linalg(name: str) -> Any:
    """The function of that name in scipy.linalg, on one BLAS thread; scipy is imported on the first call.

    LAPACK solves triangles of any size on all threads, and waits for them a thousand times as long as that takes.
    """
    function = getattr(importlib.import_module("scipy.linalg"), name)
    LIMIT.forget_libraries()  # scipy has brought its own

    @wraps(function)
    def on_one_thread(*arguments: Any, **options: Any) -> Any:
        with LIMIT.hold():
            return function(*arguments, **options)

    return on_one_thread


def by_matrix(function: Callable[..., Array], results: Array, *tensors: Array) -> Array:
    """Fills `results` with `function` of the inner matrices of `tensors`, all with the same leading shape."""
    for index in np.ndindex(results.shape[:-2]):
        results[index] = function(*[tensor[index] for tensor in tensors])
    return results
