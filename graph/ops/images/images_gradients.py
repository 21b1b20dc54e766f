"""Gradients of ops on images; sizes get none.

Resizing and cropping are linear in the image: the gradient is distributed with the same weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import number, shape_of, span, where
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_CORNERS = ("align_corners", "half_pixel_centers")


@gradient("ResizeBilinear", "ResizeBicubic")
def resize(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes this gradient."""
    image = op.inputs[0]
    if image.dtype not in (DataType.FLOAT, DataType.DOUBLE) and op.op == "ResizeBicubic":
        return None, None
    return op.make(f"{op.op}Grad", grad, image, **op.own_attrs(*_CORNERS)), None


@gradient("ResizeNearestNeighbor")
def resize_nearest(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes this gradient."""
    size = span(op, shape_of(op, 0), 1, 3)
    return op.make("ResizeNearestNeighborGrad", grad, size, **op.own_attrs(*_CORNERS)), None


@gradient("ScaleAndTranslate")
def scale_and_translate(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes this gradient."""
    image, _, scale, translation = op.inputs
    attrs = op.own_attrs("kernel_type", "antialias")
    return op.make("ScaleAndTranslateGrad", grad, image, scale, translation, **attrs), None, None, None


@gradient("CropAndResize")
def crop_and_resize(op: Forward, grad: Tensor) -> Gradients:
    """Calls the ops that compute the gradients of images and of boxes."""
    image, boxes, box_ind, _ = op.inputs
    method = op.own_attrs("method")
    to_image = None
    if image.dtype in (DataType.HALF, DataType.FLOAT, DataType.DOUBLE):
        shape = shape_of(op, 0)
        to_image = op.make("CropAndResizeGradImage", grad, boxes, box_ind, shape, T=image.dtype, **method)
    return to_image, op.make("CropAndResizeGradBoxes", grad, image, boxes, box_ind), None, None


@gradient("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective_transform(op: Forward, grad: Tensor) -> Gradients:
    """The gradient under the inverse transform, in the input's size."""
    transforms = op.inputs[1]
    last = op.make("OnesLike", op.make("Slice", transforms, [0, 0], [-1, 1]))
    square = op.make("Reshape", op.make("ConcatV2", [transforms, last], 1), [-1, 3, 3])
    flat = op.make("Reshape", op.make("MatrixInverse", square), [-1, 9])
    inverse = op.make("Slice", flat / op.make("Slice", flat, [0, 8], [-1, 1]), [0, 0], [-1, 8])
    size = span(op, shape_of(op, 0), 1, 3)
    attrs = op.own_attrs("interpolation", "fill_mode")
    other_inputs = op.inputs[3:]
    return op.make(op.op, grad, inverse, size, *other_inputs, **attrs), *[None] * (len(op.input_types) - 1)


@gradient("RGBToHSV")
def rgb_to_hsv(op: Forward, grad: Tensor) -> Gradients:
    """With M the largest, m the smallest channel, d = M - m: v = M, s = d / M, h = (sector + (a - b) / d) / 6.

    a and b are the two channels after the largest one, in cyclic order. The derivative of h is 0 where the image is
    grey, that of s where it is black.
    """
    last = op.g.constant(-1, DataType.INT32)
    rgb = op.inputs[0]
    r, g, b = op.make_all("Unpack", rgb, num=3, axis=-1)
    dh, ds, dv = op.make_all("Unpack", grad, num=3, axis=-1)
    top, low = op.make("Max", rgb, last), op.make("Min", rgb, last)
    spread = top - low
    red = op.make("Equal", top, r)
    green = op.make("LogicalAnd", op.make("LogicalNot", red), op.make("Equal", top, g))
    blue = op.make("LogicalNot", op.make("LogicalOr", red, green))
    least = _first_least(op, (r, g, b), low)
    behind = (green, blue, red), (blue, red, green)  # channel c is a, or b, when this one is the largest
    a, after = where(op, red, g, where(op, green, b, r)), where(op, red, b, where(op, green, r, g))
    zero = number(op, 0, rgb)
    turn = op.make("DivNoNan", dh * (1 / 6), spread)
    squeeze = op.make("DivNoNan", turn * (a - after), spread)  # minus the derivative of h by d
    to_top = dv + op.make("DivNoNan", ds * low, op.make("Square", top)) - squeeze
    to_low = squeeze - op.make("DivNoNan", ds, top)
    channels = []
    for place, largest in enumerate((red, green, blue)):
        is_a, is_b = behind[1][place], behind[0][place]
        gradient = where(op, largest, to_top, zero) + where(op, least[place], to_low, zero)
        channels.append(gradient + where(op, is_a, turn, zero) - where(op, is_b, turn, zero))
    return (op.make("Pack", channels, axis=-1),)


def _first_least(op: Forward, channels: tuple[Tensor, ...], low: Tensor) -> list[Tensor]:
    """Masks of the smallest channel; of equal ones the last counts."""
    blue = op.make("Equal", channels[2], low)
    not_blue = op.make("LogicalNot", blue)
    green = op.make("LogicalAnd", not_blue, op.make("Equal", channels[1], low))
    return [op.make("LogicalNot", op.make("LogicalOr", blue, green)), green, blue]
