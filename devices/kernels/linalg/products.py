"""Matrix products of all kernels: on one BLAS thread each, large ones cut into blocks for several cores.

A product that is predicted to take 400 us or more is cut: a batch into groups of matrices, a single product into blocks
of rows or of columns, whichever there are more of. [32, 784] @ [784, 1024] is computed as

    result[:, :512] = a @ b[:, :512]        result[:, 512:] = a @ b[:, 512:]

Cuts depend on shapes and the element size alone, so that a product has the same bits in every run. BLAS has another
function for a single row or column, with other last bits, so that no block is that narrow unless the whole product is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from ..blas_threads import LIMIT, UNTHREADED
from ..helpers import HELPERS
from ..output_size import output_shape

ProductBlocks = tuple[int, tuple[slice, ...]]

WORTH_CUTTING_US = 400.0
_HEAD_START_US = 60.0  # what the caller computes while a helper wakes up, and while it would wait for its end
_SURELY_SHORT = 1 << 18  # fewer multiplications take less than WORTH_CUTTING_US, of any element type and shape
# Measured on one core of 2023 with float32 numbers:
_MULTIPLICATIONS_PER_US = 72_000
_PACKED_PER_US = 5_000  # numbers that BLAS rearranges before it multiplies
_READ_PER_US = 12_000  # numbers of a matrix that is multiplied by a vector
GRAIN = 32
"""blocks have at least about so many rows or columns; BLAS computes as many together"""


def matrix_product(a: Array, b: Array) -> Array:
    """`a @ b` for two matrices."""
    multiplications = len(a) * b.size
    if multiplications < UNTHREADED:
        return np.asarray(a @ b)
    if multiplications < _SURELY_SHORT:
        return np.asarray(LIMIT.run(np.matmul, a, b))
    output_shape((len(a), b.shape[1]), a.dtype)
    axis, blocks = _blocks(*a.shape, b.shape[1], a.itemsize)
    with LIMIT.hold():
        return _in_blocks(a, b, axis, blocks) if blocks else np.asarray(a @ b)


def batch_product(a: Array, b: Array) -> Array:
    """`a @ b` for batches of matrices, whose leading axes broadcast."""
    if a.ndim == b.ndim == 2:
        return matrix_product(a, b)
    if max(a.size * b.shape[-1], a.shape[-2] * b.size) < UNTHREADED:
        return np.asarray(a @ b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    output_shape((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    axis, blocks = _batch_blocks(batch, *a.shape[-2:], b.shape[-1], a.itemsize)
    with LIMIT.hold():
        return _in_blocks(a, b, axis, blocks, batch) if blocks else np.asarray(a @ b)


def predicted_us(rows: int, inner: int, columns: int, item_bytes: int) -> float:
    """About how long one product takes on one core: within a quarter, from 100 us on."""
    numbers = inner * (rows + columns)
    if rows == 1 or columns == 1:
        return numbers / _READ_PER_US * item_bytes / 4
    return (rows * inner * columns / _MULTIPLICATIONS_PER_US + numbers / _PACKED_PER_US) * item_bytes / 4


def num_parts(took_us: float) -> int:
    """Into how many parts to cut what takes so long on one core: two, four from 4 ms, eight from 32 ms, and so on.

    Each block packs one factor anew: two blocks take 1.1 times as long as the whole product, eight 1.3 times.
    """
    return 2 << max(0, int(took_us / 500).bit_length() - 1) // 3


def cuts(size: int, parts: int, grain: int = 1, first: float = 0.0) -> Iterator[slice]:
    """Cuts `size` rows into at most so many slices of about the same size, at multiples of `grain`.

    The first one has the share `first` more than the others.
    """
    parts = max(1, min(parts, size // grain))
    share = (1 - first) / parts
    latest = (size - (grain + 1) // 2) // grain  # so that the last slice has half a grain at least
    bounds = (min(round((first + number * share) * size / grain), latest) for number in range(1, parts))
    ends = [0, *(bound * grain for bound in bounds), size]
    return (slice(start, end) for start, end in pairwise(ends) if start < end)


@lru_cache(maxsize=512)
def _blocks(rows: int, inner: int, columns: int, item_bytes: int) -> ProductBlocks:
    """The axis of the result, counted from the end, along which to cut a product, and the slices; none if it is small.

    The first block is the largest: the caller computes it while the helpers wake up.
    """
    took_us = predicted_us(rows, inner, columns, item_bytes)
    if took_us < WORTH_CUTTING_US:
        return 0, ()
    axis, size = (-2, rows) if rows >= columns else (-1, columns)
    blocks = tuple(cuts(size, num_parts(took_us), GRAIN, _HEAD_START_US / took_us))
    return axis, blocks if len(blocks) > 1 else ()


@lru_cache(maxsize=512)
def _batch_blocks(batch: tuple[int, ...], rows: int, inner: int, columns: int, item_bytes: int) -> ProductBlocks:
    """As `_blocks`, along the longest axis of the batch if that has several matrices."""
    longest = max(batch, default=1)
    if longest <= 1:
        return _blocks(rows, inner, columns, item_bytes)
    took_us = prod(batch) * predicted_us(rows, inner, columns, item_bytes)
    if took_us < WORTH_CUTTING_US:
        return 0, ()
    return batch.index(longest) - len(batch) - 2, tuple(cuts(longest, num_parts(took_us)))


def _in_blocks(a: Array, b: Array, axis: int, blocks: tuple[slice, ...], batch: tuple[int, ...] = ()) -> Array:
    result = np.empty((*batch, a.shape[-2], b.shape[-1]), np.result_type(a, b))
    # A slice on the axis of the result, and on the same axis of the factors that have it.
    after = (slice(None),) * (-axis - 1)
    of_a, of_b = axis != -1 and _has(a, axis), axis != -2 and _has(b, axis)

    def multiply(block: slice) -> None:
        at: tuple[Any, ...] = (..., block, *after)
        np.matmul(a[at] if of_a else a, b[at] if of_b else b, out=result[at])

    HELPERS.run(multiply, blocks)
    return result


def _has(factor: Array, axis: int) -> bool:
    """Whether a factor has more than one row, column, or matrix on an axis; otherwise it broadcasts along it."""
    return factor.ndim >= -axis and factor.shape[axis] != 1
