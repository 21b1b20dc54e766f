"""The lowest and the highest value of each real element type, half types included."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np


def _range(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The lowest and highest finite value, as scalars of the type."""
    if dtype.kind in "iu":
        integers = np.iinfo(dtype)
        return dtype.type(integers.min), dtype.type(integers.max)
    floats = cast(Any, ml_dtypes).finfo(dtype)  # which has no types
    return dtype.type(floats.min), dtype.type(floats.max)


def lowest(dtype: np.dtype[Any], finite: bool = False) -> Any:
    """The lowest value of a real type: minus infinity if it has one, unless `finite`."""
    return _range(dtype)[0] if finite or dtype.kind in "iu" else dtype.type(-np.inf)


def highest(dtype: np.dtype[Any], finite: bool = False) -> Any:
    """The highest value of a real type: infinity if it has one, unless `finite`."""
    return _range(dtype)[1] if finite or dtype.kind in "iu" else dtype.type(np.inf)
