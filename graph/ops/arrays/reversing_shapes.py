"""Shape functions of reversing and rotating axes: the shape stays, and the other inputs must fit it."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integers, length
from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape


@shape_fn("Reverse")
def reverse(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape; its rank is the number of flags."""
    count = length(c, 1)
    return (c.inputs[0] if count is None else with_rank(c.inputs[0], count),)


@shape_fn("ReverseV2")
def reverse_v2(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape; the listed axes must exist, each listed once."""
    with_rank(c.inputs[1], 1)
    source, axes = c.inputs[0], integers(c, 1)
    if source is not None and axes is not None:
        rank, seen = len(source), set[int]()
        for i, axis in enumerate(axes):
            if not -rank <= axis < rank:
                raise InvalidArgumentError(f"'axis'[{i}] = {axis} is out of valid range [0, {rank - 1}")
            if axis % rank in seen:
                raise InvalidArgumentError(f"axis {axis % rank} specified more than once.")
            seen.add(axis % rank)
    return (source,)


@shape_fn("ReverseSequence")
def reverse_sequence(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape; there must be one length per batch entry."""
    source, batch_dim, seq_dim = c.inputs[0], c.attrs["batch_dim"], c.attrs["seq_dim"]
    count = length(c, 1)
    if source is None:
        return (None,)
    if batch_dim < 0:
        raise InvalidArgumentError(f"batch_dim must be >=0, got {batch_dim}")
    for name, dim in (("batch_dim", batch_dim), ("seq_dim", seq_dim)):
        if dim >= len(source):
            raise InvalidArgumentError(f"{name} must be < input rank: {dim} vs. {len(source)}")
    return ((*source[:batch_dim], merge_dims(source[batch_dim], count), *source[batch_dim + 1 :]),)


@shape_fn("Roll")
def roll(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape, of rank 1 at least; shifts and axes are scalars or vectors."""
    for shape in c.inputs[1:]:
        if shape is not None and len(shape) > 1:
            raise InvalidArgumentError(f"Shape must be at most rank 1 but is rank {len(shape)}")
    return (with_rank_at_least(c.inputs[0], 1),)
