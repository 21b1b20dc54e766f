"""The values that take the place of one input of a kernel, one after the other.

They need nothing but numpy, because TensorFlow's answers are made with the same ones. The order is part of the file of
answers: after a change here the answers are made anew.

    >>> [name for name, _ in mutations(np.array([3, 4], np.int32))]
    ['rank 0', 'rank 2', 'rank 3', 'empty', 'all but axis 0', 'last -1', 'last 1000', 'last max', 'last min', ...]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

GARBAGE = b"\xff\x00\x80 garbage"


def mutations(value: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Names and values: of other ranks, empty, then of the same shape with other elements."""
    yield from _ranks(value)
    if value.ndim != 1 or value.size:
        yield "empty", np.empty((0,), value.dtype)
    for axis in range(value.ndim) if value.ndim > 1 else ():
        if value.shape[axis]:
            shape = [0 if i == axis else size for i, size in enumerate(value.shape)]
            yield f"size 0 in axis {axis}", np.empty(shape, value.dtype)
    if value.size:
        yield from _elements(value)


def _ranks(value: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for rank in range(4):
        if rank == value.ndim:
            continue
        if rank == 0:
            if value.size:
                yield "rank 0", value.reshape(-1)[:1].reshape(())
        elif rank < value.ndim:
            joined = int(np.prod(value.shape[: value.ndim - rank + 1]))
            yield f"rank {rank}", value.reshape(joined, *value.shape[value.ndim - rank + 1 :])
        else:
            yield f"rank {rank}", value.reshape((1,) * (rank - value.ndim) + value.shape)


def _elements(value: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for name, item in _items(value.dtype):
        last = value.copy()
        last.reshape(-1)[-1] = item
        yield f"last {name}", last
        if value.size > 1 and name in ("-1", "max", "nan", "empty text"):
            every = value.copy()
            every.reshape(-1)[:] = last.reshape(-1)[-1]
            yield f"all {name}", every


def _items(dtype: np.dtype[Any]) -> Iterator[tuple[str, Any]]:
    if dtype.kind == "O":
        yield from (("empty text", b""), ("garbage", GARBAGE))
    elif dtype.kind == "b":
        yield from (("False", False), ("True", True))
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype)
        yield from [("-1", -1)] if dtype.kind == "i" else [("0", 0)]
        yield from [("1000", 1000)] if dtype.itemsize > 1 else []
        yield from [("2^40", 2**40)] if dtype.itemsize > 4 else []
        yield from (("max", limits.max), ("min", limits.min))
    elif dtype.kind in "fc" or dtype.name == "bfloat16":
        yield from (("-1", -1), ("nan", np.nan), ("inf", np.inf))
