"""The element types that travel, by the number of their DataType: all of numpy and ml_dtypes that tensors have.

Quantised types are those of their integers here, as in kernels; strings, handles and variants are objects.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...graph.dtypes import REF_OFFSET, Array, DataType, from_numpy, numpy_dtype


def _element_types() -> dict[int, np.dtype[Any]]:
    types = {int(d): numpy_dtype(d) for d in DataType if 0 < d < REF_OFFSET}
    return {number: dtype for number, dtype in types.items() if not dtype.hasobject and from_numpy(dtype) == number}


DTYPES: Final = _element_types()
"""the numpy dtype of each number"""
NUMBERS: Final = {dtype: number for number, dtype in DTYPES.items()}
SCALARS: Final = {dtype.type: number for number, dtype in DTYPES.items()}
"""the number of each class of numpy scalars"""

BOOL: Final = int(DataType.BOOL)


def has_wrong_bools(array: Array) -> bool:
    """Whether Booleans are neither 0 nor 1: numpy counts what they select by other bits than it selects by."""
    return array.size > 0 and int(array.view(np.uint8).max()) > 1
