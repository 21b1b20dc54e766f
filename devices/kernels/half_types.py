"""The half types float16 and bfloat16, which most of TensorFlow's CPU kernels compute in float32 and round once."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ...graph.dtypes import Array, DataType, numpy_dtype
from .registry import Kernel

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALF_TYPES = frozenset({np.dtype(np.float16), BFLOAT16})


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether TensorFlow's CPU kernels compute this type in float32 and round the result."""
    return dtype in HALF_TYPES


def widen(value: Array) -> Array:
    """`value` in float32 if it is of a half type, else `value` itself."""
    return value.astype(np.float32) if value.dtype in HALF_TYPES else value


def in_float32(function: Kernel, dtype: DataType) -> Kernel:
    """`function` for elements of `dtype`: half types go through float32, every result of float32 is rounded back."""
    target = numpy_dtype(dtype)
    if target not in HALF_TYPES:
        return function

    def computed_wider(*inputs: Any) -> Any:
        result = function(*[widen(value) for value in inputs])
        if isinstance(result, tuple):
            return tuple(_narrow(value, target) for value in result)
        return _narrow(result, target)

    return computed_wider


def _narrow(value: Array, target: np.dtype[Any]) -> Array:
    return value.astype(target) if value.dtype == np.float32 else value
