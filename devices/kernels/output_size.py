"""The sizes of outputs that the values of inputs decide: no size is refused after memory was asked for.

numpy raises a ValueError for the number of elements that it cannot count, and lets the system kill the process where
memory was promised that is not there. So a kernel asks here first, and gets TensorFlow's error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ResourceExhaustedError
from ...graph.dtypes import dtype_name, from_numpy

MAX_ELEMENTS = 2**63 - 1
SMALL = 1 << 20  # bytes that are always there
_LIMIT_FILE = Path("/sys/fs/cgroup/memory.max")


def _memory() -> int:
    """Bytes that this process may have at all: those of the machine, or of the container that it is in."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else MAX_ELEMENTS
    try:
        return min(physical, int(_LIMIT_FILE.read_text()))
    except (OSError, ValueError):  # no such file, or "max"
        return physical


MEMORY = _memory()


def output_shape(sizes: Iterable[int], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """`sizes`, none of them negative, as the shape of an output that can be allocated.

    InvalidArgumentError for more elements than an int64 counts, ResourceExhaustedError for more bytes than there are.
    """
    shape = tuple(sizes)
    if 0 in shape:
        _check_empty(shape, dtype)
    if prod(shape) * dtype.itemsize > SMALL:
        _check(shape, dtype)
    return shape


def _check_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """ResourceExhaustedError for sizes beside a 0 that numpy, which multiplies without the zeros, cannot count."""
    if prod(size for size in shape if size) * dtype.itemsize > MAX_ELEMENTS:
        text = ",".join(map(str, shape))
        raise ResourceExhaustedError(f"no array without elements can have the shape [{text}]: its sizes are too large")


def _check(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    counted = 1
    for size in shape:
        counted *= size
        if counted > MAX_ELEMENTS:
            text = ",".join(map(str, shape))
            raise InvalidArgumentError(f"Shape [{text}] results in overflow when computing number of elements")
    if counted * dtype.itemsize > MEMORY:
        text = ",".join(map(str, shape))
        raise ResourceExhaustedError(
            f"OOM when allocating tensor with shape[{text}] and type {dtype_name(from_numpy(dtype))}"
        )
