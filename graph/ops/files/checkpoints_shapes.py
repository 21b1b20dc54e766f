"""Shape functions of the ops on checkpoints.

The shape of a restored part of a tensor is in its slice text; that of a whole tensor is only in the file.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge as merge_shapes, merge_dims, scalar, shape_fn, with_rank
from ...dtypes import Shape
from .tensor_slices import parse_shape_and_slice


def check_inputs(c: ShapeContext, count: int) -> None:
    """InvalidArgumentError unless there may be one prefix, and `count` names and slice texts."""
    with_rank(c.inputs[0], 0)
    merge_dims(with_rank(c.inputs[1], 1)[0], count)
    merge_dims(with_rank(c.inputs[2], 1)[0], count)


@shape_fn("SaveV2")
def save(c: ShapeContext) -> Sequence[Shape]:
    check_inputs(c, len(c.inputs) - 3)
    return ()


@shape_fn("RestoreV2")
def restore(c: ShapeContext) -> Sequence[Shape]:
    """The shape of each requested part; unknown for whole tensors."""
    count = len(c.output_types)
    with_rank(c.inputs[0], 0)
    merge_shapes(with_rank(c.inputs[1], 1), with_rank(c.inputs[2], 1))
    parts = c.constant(2)
    if parts is None:
        return (None,) * count
    if len(parts) != count:
        raise InvalidArgumentError("The number of shape_and_slice doesn't match tensor outputs.")
    return tuple([part_shape(part.decode()) for part in parts.tolist()])


def part_shape(text: str) -> Shape:
    """The shape of a part of a tensor from its slice text; None for an empty one, which stands for a whole tensor."""
    if not text:
        return None
    shape, part = parse_shape_and_slice(text)
    return part.shape_in(shape)


@shape_fn("MergeV2Checkpoints")
def merge(c: ShapeContext) -> Sequence[Shape]:
    with_rank(c.inputs[0], 1)
    with_rank(c.inputs[1], 0)
    return ()


@shape_fn("ShardedFilename", "ShardedFilespec")
def file_name(c: ShapeContext) -> Sequence[Shape]:
    """A scalar, from scalars."""
    for shape in c.inputs:
        with_rank(shape, 0)
    return scalar(c)
