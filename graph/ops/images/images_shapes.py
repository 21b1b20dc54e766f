"""Shape functions of ops on images [batch, height, width, channels] and boxes.

Channels stay; the number of boxes that are chosen is unknown before the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import ranked_shape_from
from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape


def _size(c: ShapeContext, index: int) -> tuple[int | None, int | None]:
    """The height and width that input `index` holds."""
    (length,) = with_rank(c.inputs[index], 1)
    merge_dims(length, 2)
    value = c.constant(index)
    if value is None:
        return None, None
    height, width = (int(n) for n in value)
    if height < 0 or width < 0:
        raise InvalidArgumentError(f"Dimension size, given by scalar input {index}, must be non-negative")
    return height, width


@shape_fn("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea", "ResizeNearestNeighborGrad")
def resize(c: ShapeContext) -> Sequence[Shape]:
    """[batch, new height, new width, channels]."""
    images = with_rank(c.inputs[0], 4)
    return ((images[0], *_size(c, 1), images[3]),)


@shape_fn("ResizeBilinearGrad", "ResizeBicubicGrad", "ScaleAndTranslateGrad")
def resize_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the original image."""
    return (c.inputs[1],)


@shape_fn("ScaleAndTranslate")
def scale_and_translate(c: ShapeContext) -> Sequence[Shape]:
    """As Resize; scale and translation are pairs."""
    for pair in c.inputs[2:]:
        merge_dims(with_rank(pair, 1)[0], 2)
    return resize(c)


@shape_fn("CropAndResize")
def crop_and_resize(c: ShapeContext) -> Sequence[Shape]:
    """[boxes, crop height, crop width, channels]."""
    images, boxes = with_rank(c.inputs[0], 4), with_rank(c.inputs[1], 2)
    merge_dims(boxes[1], 4)
    count = merge_dims(boxes[0], with_rank(c.inputs[2], 1)[0])
    return ((count, *ranked_shape_from(c, 3, 2), images[3]),)


@shape_fn("CropAndResizeGradImage")
def crop_and_resize_grad_image(c: ShapeContext) -> Sequence[Shape]:
    """The shape that input 3 holds."""
    return (ranked_shape_from(c, 3, 4),)


@shape_fn("CropAndResizeGradBoxes")
def crop_and_resize_grad_boxes(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the boxes, as far as it is known before the run."""
    with_rank(c.inputs[2], 2)
    return (c.inputs[2],)


shape_fn("DrawBoundingBoxesV2")(lambda c: (with_rank_at_least(c.inputs[0], 3),))


@shape_fn("DrawBoundingBoxes")
def draw_bounding_boxes(c: ShapeContext) -> Sequence[Shape]:
    merge_dims(with_rank(c.inputs[1], 3)[2], 4)
    return (with_rank_at_least(c.inputs[0], 3),)


@shape_fn("ExtractGlimpse", "ExtractGlimpseV2")
def extract_glimpse(c: ShapeContext) -> Sequence[Shape]:
    """[batch, glimpse height, glimpse width, channels]."""
    images, offsets = with_rank(c.inputs[0], 4), with_rank(c.inputs[2], 2)
    return ((merge_dims(images[0], offsets[0]), *ranked_shape_from(c, 1, 2), images[3]),)


@shape_fn("RGBToHSV", "HSVToRGB")
def colours(c: ShapeContext) -> Sequence[Shape]:
    """The images' shape; the last size must be 3."""
    images = with_rank_at_least(c.inputs[0], 1)
    return (None if images is None else (*images[:-1], merge_dims(images[-1], 3)),)


@shape_fn("AdjustContrast", "AdjustContrastv2", "AdjustHue", "AdjustSaturation")
def adjusted(c: ShapeContext) -> Sequence[Shape]:
    """The images' shape; of the scalars TensorFlow checks only the contrast of the second version before the run."""
    if c.op == "AdjustContrastv2":
        with_rank(c.inputs[1], 0)
    return (with_rank_at_least(c.inputs[0], 3),)


@shape_fn("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def image_projective_transform(c: ShapeContext) -> Sequence[Shape]:
    """[batch, new height, new width, channels]."""
    images = with_rank(c.inputs[0], 4)
    return ((images[0], *ranked_shape_from(c, 2, 2), images[3]),)
