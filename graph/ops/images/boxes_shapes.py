"""Shapes of crops, drawings and chosen boxes.

Flows in: shapes of images and boxes, sizes where they are known. Flows out: shapes of crops, images or box numbers.
Always holds: channels stay; how many boxes are chosen is not known before the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape
from ..nn.conv_shapes import spelled_out


@shape_fn("CropAndResize")
def crop_and_resize(c: ShapeContext) -> Sequence[Shape]:
    """[boxes, crop height, crop width, channels]."""
    images, boxes = with_rank(c.inputs[0], 4), with_rank(c.inputs[1], 2)
    merge_dims(boxes[1], 4)
    count = merge_dims(boxes[0], with_rank(c.inputs[2], 1)[0])
    return ((count, *spelled_out(c, 3, 2), images[3]),)


@shape_fn("CropAndResizeGradImage")
def crop_and_resize_grad_image(c: ShapeContext) -> Sequence[Shape]:
    """The shape that input 3 holds."""
    return (spelled_out(c, 3, 4),)


@shape_fn("CropAndResizeGradBoxes")
def crop_and_resize_grad_boxes(c: ShapeContext) -> Sequence[Shape]:
    """That of the boxes."""
    return (with_rank(c.inputs[2], 2),)


shape_fn("DrawBoundingBoxesV2")(lambda c: (with_rank_at_least(c.inputs[0], 3),))


@shape_fn("DrawBoundingBoxes")
def draw_bounding_boxes(c: ShapeContext) -> Sequence[Shape]:
    """That of the images."""
    merge_dims(with_rank(c.inputs[1], 3)[2], 4)
    return (with_rank_at_least(c.inputs[0], 3),)


@shape_fn("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3")
def non_max_suppression(c: ShapeContext) -> Sequence[Shape]:
    """A vector of unknown length."""
    boxes, (scores,) = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 1)
    merge_dims(boxes[0], scores)
    merge_dims(boxes[1], 4)
    for threshold in c.inputs[2:]:
        with_rank(threshold, 0)
    return ((None,),)


@shape_fn("ExtractGlimpse", "ExtractGlimpseV2")
def extract_glimpse(c: ShapeContext) -> Sequence[Shape]:
    """[batch, glimpse height, glimpse width, channels]."""
    images, offsets = with_rank(c.inputs[0], 4), with_rank(c.inputs[2], 2)
    return ((merge_dims(images[0], offsets[0]), *spelled_out(c, 1, 2), images[3]),)
