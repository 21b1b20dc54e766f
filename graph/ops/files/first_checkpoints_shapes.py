"""Shape functions of the ops on checkpoints of the first format."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank
from ...dtypes import Shape
from .checkpoints_shapes import check_inputs, part_shape


@shape_fn("SaveSlices")
def save_slices(c: ShapeContext) -> Sequence[Shape]:
    check_inputs(c, len(c.inputs) - 3)
    return ()


@shape_fn("Save")
def save_first_format(c: ShapeContext) -> Sequence[Shape]:
    with_rank(c.inputs[0], 0)
    merge_dims(with_rank(c.inputs[1], 1)[0], len(c.inputs) - 2)
    return ()


@shape_fn("Restore")
def restore_first_format(c: ShapeContext) -> Sequence[Shape]:
    """Known from the file only."""
    with_rank(c.inputs[0], 0)
    with_rank(c.inputs[1], 0)
    return (None,)


@shape_fn("RestoreSlice")
def restore_slice(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the requested part; unknown for a whole tensor."""
    for shape in c.inputs:
        with_rank(shape, 0)
    part = c.constant(2)
    return (None if part is None else part_shape(part.item().decode()),)
