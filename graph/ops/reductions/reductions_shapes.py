"""Shape functions of reductions along axes, scans, segments, counts and histograms.

Sizes are unknown where they depend on values that are not known before the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integer, size_from
from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    normalize_axis,
    scalar,
    shape_fn,
    unchanged,
    with_rank,
    with_rank_at_least,
    with_rank_at_most,
)
from ...dtypes import Array, Shape
from ...versions import LAST_WITH_MATRICES_OF_AXES

shape_fn("L2Loss")(scalar)
shape_fn("Cumsum", "Cumprod", "CumulativeLogsumexp")(unchanged)


def _axes(value: Array, rank: int) -> set[int]:
    axes = set()
    for axis in value.reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"Invalid reduction dimension {axis} for input with {rank} dimensions.")
        axes.add(axis % rank)
    return axes


@shape_fn("Sum", "Prod", "Mean", "Max", "Min", "All", "Any", "EuclideanNorm")
def reduction(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape without the reduced axes, or with 1 there under keep_dims."""
    shape, keep, value = c.inputs[0], c.attrs["keep_dims"], c.constant(1)
    if c.producer > LAST_WITH_MATRICES_OF_AXES:
        with_rank_at_most(c.inputs[1], 1)
    if shape is None:
        return (None,)
    if value is None:
        return ((None,) * len(shape) if keep else None,)
    axes = _axes(value, len(shape))
    if keep:
        return (tuple(1 if i in axes else size for i, size in enumerate(shape)),)
    return (tuple(size for i, size in enumerate(shape) if i not in axes),)


@shape_fn("ArgMax", "ArgMin")
def arg_extreme(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape without one axis."""
    shape = c.inputs[0]
    with_rank(c.inputs[1], 0)
    if shape is None:
        return (None,)
    rank, axis = len(shape), integer(c, 1)
    if rank <= 1:
        return ((),)
    if axis is None:
        return ((None,) * (rank - 1),)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Dimension ({axis}) must be in the range [{-rank}, {rank}), "
            f"where {rank} is the number of dimensions in the input."
        )
    axis = normalize_axis(axis, rank)
    return (shape[:axis] + shape[axis + 1 :],)


@shape_fn("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax")
def segment(c: ShapeContext) -> Sequence[Shape]:
    """As many rows as the last segment number says, then the rest of the data's shape."""
    data = with_rank_at_least(c.inputs[0], 1)
    with_rank(c.inputs[1], 1)
    if data is None:
        return (None,)
    ids = c.constant(1)
    rows = None if ids is None or ids.ndim != 1 else int(ids[-1]) + 1 if ids.size else 0
    return ((rows,) + data[1:],)


@shape_fn("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax")
def unsorted_segment(c: ShapeContext) -> Sequence[Shape]:
    """`num_segments` rows, then what the data has beyond the shape of the segment numbers."""
    data, ids, rows = c.inputs[0], c.inputs[1], size_from(c, 2)
    if data is None or ids is None:
        return (None,)
    with_rank_at_least(data, len(ids))
    merge(data[: len(ids)], ids)
    return ((rows,) + data[len(ids) :],)


def _size(c: ShapeContext, index: int) -> int | None:
    with_rank(c.inputs[index], 0)
    size = integer(c, index)
    if size is not None and size < 0:
        raise InvalidArgumentError(f"size ({size}) must be non-negative")
    return size


@shape_fn("Bincount")
def bincount(c: ShapeContext) -> Sequence[Shape]:
    """A vector with one count per bin."""
    return ((_size(c, 1),),)


@shape_fn("DenseBincount")
def dense_bincount(c: ShapeContext) -> Sequence[Shape]:
    """A vector of counts, or one such vector per row of the input."""
    shape, size = c.inputs[0], _size(c, 1)
    if shape is None:
        return (None,)
    with_rank_at_most(shape, 2)
    return (shape[:-1] + (size,),)


@shape_fn("HistogramFixedWidth")
def histogram(c: ShapeContext) -> Sequence[Shape]:
    """A vector with one count per bin."""
    merge_dims(with_rank(c.inputs[1], 1)[0], 2)
    with_rank(c.inputs[2], 0)
    bins = integer(c, 2)
    if bins is not None and bins <= 0:
        raise InvalidArgumentError(f"Requires nbins > 0: {bins}")
    return ((bins,),)
