"""Shapes of projective transforms of images.

Flows in: the images' shape and the new size where it is known. Flows out: the new shape. Always holds: batch and
channels stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank
from ...dtypes import Shape
from ..nn.conv_shapes import spelled_out


@shape_fn("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def image_projective_transform(c: ShapeContext) -> Sequence[Shape]:
    """[batch, new height, new width, channels]."""
    images = with_rank(c.inputs[0], 4)
    return ((images[0], *spelled_out(c, 2, 2), images[3]),)
