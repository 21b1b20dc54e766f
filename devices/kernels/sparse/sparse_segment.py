"""Kernels that pick rows and combine them by segment: sum, mean, sum over the root of the count; and their gradients.

A segment without rows is zero; half types are summed in float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..arrays.combining import combine_rows
from ..arrays.indices import is_any_outside
from ..checks import require
from ..half_types import widen
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel

# From the number of rows in each segment to the divisor of their sum.
_DIVISOR: dict[str, Callable[[Array], Array] | None] = {"Sum": None, "Mean": lambda n: n, "SqrtN": np.sqrt}


def _kind(op: str) -> str:
    return op.removeprefix("SparseSegment").removesuffix("WithNumSegments").removesuffix("V2").removesuffix("Grad")


def _check(indices: Array, segment_ids: Array) -> None:
    if indices.ndim != 1:
        raise InvalidArgumentError("indices should be a vector.")
    if segment_ids.ndim != 1:
        raise InvalidArgumentError("segment_ids should be a vector.")
    if indices.size != segment_ids.size:
        raise InvalidArgumentError("segment_ids and indices should have same size.")


def _check_segments(segment_ids: Array, rows: int | None) -> None:
    if segment_ids.size == 0:
        return
    if segment_ids[0] < 0:
        raise InvalidArgumentError(
            f"Segment id {segment_ids[0]} out of range [0, {segment_ids[-1] + 1 if rows is None else rows}), "
            "possibly because 'segment_ids' input is not sorted."
        )
    if np.logical_or.reduce(segment_ids[1:] < segment_ids[:-1]):
        raise InvalidArgumentError("segment ids are not increasing")
    if rows is not None and segment_ids[-1] >= rows:
        raise InvalidArgumentError("segment ids must be < num_segments")


def _first_outside(values: Array, limit: int) -> int | None:
    """The index of the first value that is not in [0, limit), or None."""
    if not is_any_outside(values, limit):
        return None
    return int(np.flatnonzero((values < 0) | (values >= limit))[0])


def _check_grad(indices: Array, segment_ids: Array, rows: int, segments: int) -> None:
    if segment_ids.size and segment_ids[-1] >= segments:
        raise InvalidArgumentError("Invalid number of segments")
    for name, values, limit in (("Index", indices, rows), ("Segment id", segment_ids, segments)):
        place = _first_outside(values, limit)
        if place is not None:
            raise InvalidArgumentError(f"{name} {values[place]} out of range [0, {limit}).")


def _scale(kind: str, segment_ids: Array, rows: int) -> Array | None:
    divisor = _DIVISOR[kind]
    if divisor is None:
        return None
    counts = np.bincount(segment_ids, minlength=rows)
    return np.asarray(divisor(np.maximum(counts, 1)))


def _per_row(values: Array, like: Array) -> Array:
    return values.reshape(-1, *(1,) * (like.ndim - 1)).astype(like.dtype)


@kernel(*(f"SparseSegment{kind}{more}" for kind in _DIVISOR for more in ("", "WithNumSegments")))
def sparse_segment(node: Construction) -> Kernel:
    """The picked rows combined by segment; the number of rows is an input, or follows from the last segment number."""
    kind = _kind(node.op)

    def run(data: Array, indices: Array, segment_ids: Array, *counts: Array) -> Array:
        if data.ndim == 0:
            raise InvalidArgumentError("input must have at least rank 1")
        _check(indices, segment_ids)
        if counts and counts[0].ndim:
            raise InvalidArgumentError(f"num_segments should be a scalar, not shape {shape_text(counts[0].shape)}")
        asked = int(counts[0]) if counts else None
        if asked is not None and asked < 0:
            raise InvalidArgumentError(f"segment ids must be >= 0: num_segments is {asked}")
        _check_segments(segment_ids, asked)
        rows = asked if asked is not None else int(segment_ids[-1]) + 1 if segment_ids.size else 0
        bad = _first_outside(indices, data.shape[0])
        if bad is not None:
            raise InvalidArgumentError(f"Bad: indices[{bad}] == {indices[bad]} out of range [0, {data.shape[0]})")
        wide = widen(data)
        result = np.zeros(output_shape((rows, *data.shape[1:]), wide.dtype), wide.dtype)
        combine_rows(np.add, result, segment_ids, wide[indices])
        scale = _scale(kind, segment_ids, rows)
        if scale is not None and rows:
            result /= _per_row(scale, result)
        return result.astype(data.dtype, copy=False)

    return run


@kernel(*(f"SparseSegment{kind}GradV2" for kind in _DIVISOR))
def sparse_segment_grad_of_used_rows(node: Construction) -> Kernel:
    """As the first version, for those rows only that a segment has: their gradients, and their numbers, rising."""
    kind = _kind(node.op)

    def run(grad: Array, indices: Array, segment_ids: Array, dense_rows: Array) -> tuple[Array, Array]:
        require(grad.ndim > 0, "input must have at least rank 1")
        _check(indices, segment_ids)
        if dense_rows.ndim:
            raise InvalidArgumentError("dense_output_dim0 should be a scalar.")
        _check_grad(indices, segment_ids, int(dense_rows), grad.shape[0])
        used, places = np.unique(indices, return_inverse=True)
        return _spread(kind, grad, places.reshape(-1), segment_ids, len(used)), used

    return run


def _spread(kind: str, grad: Array, places: Array, segment_ids: Array, rows: int) -> Array:
    """The gradients of segments, added to the rows at `places`."""
    wide = widen(grad)
    scale = _scale(kind, segment_ids, grad.shape[0])
    picked = wide[segment_ids]
    if scale is not None:
        picked = picked / _per_row(scale, wide)[segment_ids]
    result = np.zeros((rows, *grad.shape[1:]), wide.dtype)
    combine_rows(np.add, result, places, picked)
    return result.astype(grad.dtype, copy=False)


@kernel(*(f"SparseSegment{kind}Grad" for kind in _DIVISOR))
def sparse_segment_grad(node: Construction) -> Kernel:
    """The gradient of each segment, distributed to the rows that it was made of."""
    kind = _kind(node.op)

    def run(grad: Array, indices: Array, segment_ids: Array, output_dim0: Array) -> Array:
        require(grad.ndim > 0, "input must have at least rank 1")
        _check(indices, segment_ids)
        if output_dim0.ndim:
            raise InvalidArgumentError("output_dim0 should be a scalar.")
        rows = int(output_dim0)
        if rows == 0:
            return np.zeros((0, *grad.shape[1:]), grad.dtype)
        _check_grad(indices, segment_ids, rows, grad.shape[0])
        output_shape((rows, *grad.shape[1:]), grad.dtype)
        return _spread(kind, grad, indices, segment_ids, rows)

    return run
