"""Kernels that reduce rows of a tensor by segment: sorted and unsorted segment ops.

The rows of a segment are combined in their order; a segment without rows gets the op's neutral value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..arrays.combining import combine_rows
from ..arrays.indices import is_any_outside, run_starts
from ..checks import require
from ..elementwise.division import cut_quotient
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .limits import highest, lowest

_UFUNCS = {"Sum": np.add, "Mean": np.add, "Prod": np.multiply, "Min": np.minimum, "Max": np.maximum}


def _combine(ufunc: np.ufunc, data: Array, ids: Array, rows: int, empty: Any) -> Array:
    """Reduces the rows of `data` with equal numbers in ascending `ids` (all below `rows`), along the first axis."""
    result = np.empty(output_shape((rows,) + data.shape[1:], data.dtype), data.dtype)
    result.fill(empty)
    if ids.size and result.size:
        starts = run_starts(ids)
        result[ids[starts]] = ufunc.reduceat(data, starts, 0, data.dtype)
    return result


def _sorted_rows(data: Array, ids: Array) -> int:
    """The number of segments that ascending `ids` name; InvalidArgumentError where they do not fit `data`."""
    require(ids.ndim == 1, "segment_ids should be a vector.")
    require(data.ndim > 0 and data.shape[0] == ids.size, "segment_ids should be the same size as dimension 0 of input.")
    if not ids.size:
        return 0
    rows = int(ids[-1]) + 1
    require(rows > 0, "segment ids must be >= 0")
    if ids[0] < 0:
        outside = ids[(ids < 0) | (ids >= rows)]
        raise InvalidArgumentError(
            f"Segment id {outside[0]} out of range [0, {rows}), possibly because 'segment_ids' input is not sorted."
        )
    require(bool(np.logical_and.reduce(ids[1:] >= ids[:-1])), "segment ids are not increasing")
    return rows


@kernel("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax")
def segment(node: Construction) -> Kernel:
    """Rows combined by ascending segment numbers; a gap in the numbers gives zeros, or ones for a product."""
    kind = node.op.removeprefix("Segment")
    dtype = numpy_dtype(node.output_types[0])
    ufunc, empty = _UFUNCS[kind], 1 if kind == "Prod" else 0

    def combined(data: Array, ids: Array) -> Array:
        return _combine(ufunc, data, ids, _sorted_rows(data, ids), empty)

    def averaged(data: Array, ids: Array) -> Any:
        total = combined(data, ids)
        counts = np.maximum(np.bincount(ids, minlength=len(total)), 1).astype(dtype)
        counts = counts.reshape((-1,) + (1,) * (data.ndim - 1))
        return cut_quotient(total, counts) if dtype.kind in "iu" else total / counts

    return averaged if kind == "Mean" else combined


def _empty(kind: str, dtype: np.dtype[Any]) -> Any:
    if kind in ("Sum", "Prod"):
        return dtype.type(kind == "Prod")
    return highest(dtype, finite=True) if kind == "Min" else lowest(dtype, finite=True)


def _check_below(ids: Array, count: int) -> None:
    """InvalidArgumentError for the first segment number not below `count`."""
    for place in map(tuple, np.argwhere(ids >= count).tolist()):
        raise InvalidArgumentError(f"segment_ids{shape_text(place)} = {ids[place]} is out of range [0, {count})")


@kernel("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax")
def unsorted_segment(node: Construction) -> Kernel:
    """Slices combined by segment numbers in any order, into num_segments rows; negative numbers drop their slice.

    Each segment begins with 0, 1, or the greatest (for Min) or least (for Max) finite value of the type, and its slices
    are added one after the other.
    """
    kind = node.op.removeprefix("UnsortedSegment")
    ufunc, empty = _UFUNCS[kind], _empty(kind, numpy_dtype(node.output_types[0]))

    def combined(data: Array, ids: Array, num_segments: Array) -> Array:
        if num_segments.ndim != 0:
            raise InvalidArgumentError(f"num_segments should be a scalar, not shape {shape_text(num_segments.shape)}")
        count, data, ids = int(num_segments), np.asarray(data), np.asarray(ids)
        require(count >= 0, f"Input num_segments == {count} must not be negative.")
        if data.shape[: ids.ndim] != ids.shape:
            raise InvalidArgumentError(
                f"data.shape = {shape_text(data.shape)} does not start with segment_ids.shape = {shape_text(ids.shape)}"
            )
        inner = data.shape[ids.ndim :]
        if is_any_outside(ids, count):
            if data.size:
                _check_below(ids, count)
            ids, data = ids[ids >= 0], data[ids >= 0]
        ids, data = ids.reshape(-1), data.reshape(ids.size, *inner)
        result = np.empty(output_shape((count, *inner), data.dtype), data.dtype)
        result.fill(empty)
        combine_rows(ufunc, result, ids, data)
        return result

    return combined
