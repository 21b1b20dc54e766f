"""Shape functions of the ops that rank or search elements along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integer, length, size_from
from ...analysis.shape_functions import (
    ShapeContext,
    merge_dims,
    normalize_axis,
    shape_fn,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape


@shape_fn("TopK", "TopKV2")
def top_k(c: ShapeContext) -> Sequence[Shape]:
    """Values and indices: the input's shape with k as the last size."""
    source = with_rank_at_least(c.inputs[0], 1)
    if len(c.inputs) > 1 and c.constant(1) is not None and c.inputs[1]:
        raise InvalidArgumentError(f"Input must be scalar but has rank {len(c.inputs[1])}")
    k = integer(c, 1) if len(c.inputs) > 1 else c.attrs["k"]
    if k is not None and k < 0:
        raise InvalidArgumentError(f"Need k >= 0, got {k}")
    if source is None:
        return (None, None)
    last = source[-1]
    if last is not None and k is not None and last < k:
        raise InvalidArgumentError(f"input must have last dimension >= k = {k} but is {last}")
    return ((*source[:-1], k),) * 2


@shape_fn("ApproxTopK")
def approx_top_k(c: ShapeContext) -> Sequence[Shape]:
    """Values and indices: the input's shape with k as the size of one axis, unless a TPU leaves candidates there."""
    shape, k = c.inputs[0], c.attrs["k"]
    if shape is None:
        return (None, None)
    axis = normalize_axis(c.attrs["reduction_dimension"], len(shape))
    if not c.attrs["aggregate_to_topk"]:
        return ((*shape[:axis], None, *shape[axis + 1 :]),) * 2
    size = shape[axis]
    if size is not None and size < k:
        raise InvalidArgumentError(f"input must have last dimension >= k = {k} but was {size}")
    return ((*shape[:axis], k, *shape[axis + 1 :]),) * 2


@shape_fn("NthElement")
def nth_element(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape without its last axis."""
    source, n = with_rank_at_least(c.inputs[0], 1), size_from(c, 1)
    if source is None:
        return (None,)
    last = source[-1]
    if last is not None and n is not None and last <= n:
        raise InvalidArgumentError(f"Input must have last dimension > n = {n} but is {last}")
    return (source[:-1],)


@shape_fn("LowerBound", "UpperBound")
def bound(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the values."""
    with_rank(c.inputs[0], 2)
    with_rank(c.inputs[1], 2)
    return (c.inputs[1],)


@shape_fn("InTopK", "InTopKV2")
def in_top_k(c: ShapeContext) -> Sequence[Shape]:
    """A vector, one element a row of the predictions."""
    rows = with_rank(c.inputs[0], 2)[0]
    return ((merge_dims(rows, length(c, 1)),),)
