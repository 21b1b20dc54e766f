"""Shape functions of DynamicPartition and DynamicStitch.

The axes behind those of the partition numbers or indices are the shape of one slice, which stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import shape_text
from ...analysis.shape_functions import ShapeContext, merge, merge_dims, shape_fn, with_rank_at_least
from ...dtypes import Shape


def _slice_shape(data: Shape, places: Shape) -> Shape:
    """The sizes of `data` behind those of `places`, with which it must begin; None where they are unknown."""
    if data is None or places is None:
        return None
    if len(data) < len(places):
        raise InvalidArgumentError(f"data.shape = {shape_text(data)} does not start with {shape_text(places)}")
    merge(data[: len(places)], places)
    return data[len(places) :]


@shape_fn("DynamicPartition")
def dynamic_partition(c: ShapeContext) -> Sequence[Shape]:
    """Each partition has an unknown number of slices."""
    data, places = c.inputs
    if data is not None and places is not None:
        with_rank_at_least(data, len(places))
        for size, count in zip(data, places, strict=False):
            merge_dims(size, count)
    slice_shape = _slice_shape(data, places)
    return (None if slice_shape is None else (None, *slice_shape),) * len(c.output_types)


@shape_fn("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(c: ShapeContext) -> Sequence[Shape]:
    """One slice for each number up to the largest index."""
    count = c.attrs["N"]
    slice_shape: Shape = None
    for places, data in zip(c.inputs[:count], c.inputs[count:], strict=True):
        slice_shape = merge(slice_shape, _slice_shape(data, places))
    if slice_shape is None:
        return (None,)
    values = [c.constant(i) for i in range(count)]
    if any(value is None for value in values):
        return ((None, *slice_shape),)
    largest = max((int(value.max()) for value in values if value is not None and value.size), default=-1)
    return ((largest + 1, *slice_shape),)
