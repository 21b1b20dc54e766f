"""Inputs whose elements lie in the order of their axes, for kernels that would round views of them otherwise.

BLAS, and the sums of numpy, add in an order that depends on strides: the same values as a transposed or broadcast view
would have other last bits. What is dense already is not copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.dtypes import Array
from .registry import Kernel


def dense(value: Array) -> Array:
    """`value`, or a copy of it in the order of its axes."""
    return value if value.flags.c_contiguous else np.array(value, order="C")


def of_dense(function: Kernel) -> Kernel:
    """`function`, called with dense inputs."""

    def compute(*inputs: Any) -> Any:  # Any: as a kernel takes and returns
        return function(*map(dense, inputs))

    return compute
