"""Shape functions of the ops that choose among overlapping boxes.

How many boxes are chosen is unknown before the run, unless the outputs are padded to a known size.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integer
from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank
from ...dtypes import Shape


def _check(c: ShapeContext) -> None:
    boxes, (scores,) = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 1)
    merge_dims(boxes[0], scores)
    merge_dims(boxes[1], 4)
    for parameter in c.inputs[2:]:
        with_rank(parameter, 0)


@shape_fn("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3")
def non_max_suppression(c: ShapeContext) -> Sequence[Shape]:
    """A vector of unknown length."""
    _check(c)
    return ((None,),)


@shape_fn("NonMaxSuppressionV4", "NonMaxSuppressionV5")
def non_max_suppression_padded(c: ShapeContext) -> Sequence[Shape]:
    """Vectors, and the number of boxes; the vectors are as long as input 2 says if they are padded."""
    _check(c)
    length = _size(c, 2) if c.attrs["pad_to_max_output_size"] else None
    return (*((length,),) * (len(c.output_types) - 1), ())


@shape_fn("NonMaxSuppressionWithOverlaps")
def non_max_suppression_with_overlaps(c: ShapeContext) -> Sequence[Shape]:
    """A vector of unknown length."""
    overlaps, (scores,) = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 1)
    merge_dims(merge_dims(overlaps[0], scores), overlaps[1])
    for parameter in c.inputs[2:]:
        with_rank(parameter, 0)
    return ((None,),)


@shape_fn("CombinedNonMaxSuppression")
def combined_non_max_suppression(c: ShapeContext) -> Sequence[Shape]:
    """[images, rows, 4], twice [images, rows] and [images]."""
    boxes, scores = with_rank(c.inputs[0], 4), with_rank(c.inputs[1], 3)
    for parameter in c.inputs[2:]:
        with_rank(parameter, 0)
    merge_dims(boxes[3], 4)
    if boxes[2] not in (1, None):
        merge_dims(boxes[2], scores[2])
    merge_dims(boxes[0], scores[0])
    merge_dims(boxes[1], scores[1])
    images, rows = boxes[0], _rows(c, scores[2])
    return (images, rows, 4), (images, rows), (images, rows), (images,)


def _rows(c: ShapeContext, classes: int | None) -> int | None:
    total = _size(c, 3)
    if total is None or not c.attrs["pad_per_class"]:
        return total
    per_class = _size(c, 2)
    return None if per_class is None or classes is None else min(total, per_class * classes)


def _size(c: ShapeContext, index: int) -> int | None:
    size = integer(c, index)
    if size is not None and size < 0:
        raise InvalidArgumentError(f"Dimension size, given by scalar input {index}, must be non-negative but is {size}")
    return size
