"""Shape functions of gathers and OneHot.

The values of axes and depths are used where they are known, those of indices never.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integer, shape_text
from ...analysis.shape_functions import ShapeContext, merge, normalize_axis, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape


@shape_fn("Gather")
def gather(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the indices, then that of one slice."""
    params, indices = with_rank_at_least(c.inputs[0], 1), c.inputs[1]
    return (None if params is None or indices is None else (*indices, *params[1:]),)


@shape_fn("GatherV2")
def gather_v2(c: ShapeContext) -> Sequence[Shape]:
    """The shape of `params`, with the indices' axes beyond the batch in place of the gathered axis."""
    params, indices = with_rank_at_least(c.inputs[0], 1), c.inputs[1]
    with_rank(c.inputs[2], 0)
    axis, batch_dims = integer(c, 2), c.attrs.get("batch_dims", 0)
    if params is None or indices is None:
        return (None,)
    batch = batch_dims + len(indices) if batch_dims < 0 else batch_dims
    if not 0 <= batch <= len(indices):
        raise InvalidArgumentError(f"Shape must be at least rank {batch} but is rank {len(indices)}")
    if axis is None:
        return ((None,) * (len(params) + len(indices) - 1 - batch),)
    place = normalize_axis(axis, len(params))
    if place < batch:
        raise InvalidArgumentError(f"batch_dims ({batch}) must be less than or equal to axis ({place}).")
    outer = with_rank(merge(params[:batch], indices[:batch]), batch)
    return ((*outer, *params[batch:place], *indices[batch:], *params[place + 1 :]),)


@shape_fn("GatherNd")
def gather_nd(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the indices without their last axis, then that of one slice."""
    params, indices = c.inputs[0], with_rank_at_least(c.inputs[1], 1)
    if params is None or indices is None or indices[-1] is None:
        return (None,)
    if indices[-1] > len(params):
        raise InvalidArgumentError(
            f"indices.shape[-1] must be <= params.rank, but saw indices shape: {shape_text(indices)} "
            f"and params shape: {shape_text(params)}"
        )
    return ((*indices[:-1], *params[indices[-1] :]),)


@shape_fn("OneHot")
def one_hot(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the indices with the depth as a new size."""
    indices, axis, depth = c.inputs[0], c.attrs["axis"], integer(c, 1)
    if axis < -1:
        raise InvalidArgumentError("axis must be >= -1")
    if depth is not None:
        with_rank(c.inputs[1], 0)
    if depth is not None and depth < 0:
        raise InvalidArgumentError(f"depth must be non-negative, got: {depth}")
    if indices is None:
        return (None,)
    place = len(indices) if axis == -1 else axis
    return ((*indices[:place], depth, *indices[place:]),)
