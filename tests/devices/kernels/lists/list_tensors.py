"""Tensor lists to try kernels on."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import run

FLOAT, INT32, VARIANT = DataType.FLOAT, DataType.INT32, DataType.VARIANT


UNKNOWN = np.int32(-1)


PAIR = np.array([2], np.int32)


ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


def rows_list() -> Array:
    """The list of the rows of ROWS."""
    items: Array = run("TensorListFromTensor", ROWS, PAIR)
    return items


def empty(shape: Array = PAIR, limit: int = -1) -> Array:
    items: Array = run("EmptyTensorList", shape, np.int32(limit), element_dtype=FLOAT)
    return items


def reserved(size: int, shape: Any = PAIR) -> Array:  # Any: a vector, or numpy's scalar -1
    items: Array = run("TensorListReserve", shape, np.int32(size), element_dtype=FLOAT)
    return items


def stacked(value: Array, shape: Any = UNKNOWN) -> Array:  # Any: as in `reserved`
    rows: Array = run("TensorListStack", value, shape, element_dtype=FLOAT)
    return rows
