"""Shapes of colour changes: those of the images.

Flows in: the shape of images. Flows out: that shape. Always holds: where a colour is changed, the last axis has three
channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape


@shape_fn("RGBToHSV", "HSVToRGB")
def colours(c: ShapeContext) -> Sequence[Shape]:
    """The images' shape; the last axis is known to be three."""
    images = with_rank_at_least(c.inputs[0], 1)
    return (None if images is None else (*images[:-1], merge_dims(images[-1], 3)),)


@shape_fn("AdjustContrastv2", "AdjustHue", "AdjustSaturation")
def adjusted(c: ShapeContext) -> Sequence[Shape]:
    """The images' shape; TensorFlow infers that the contrast is a scalar, and leaves the others to the run."""
    if c.op == "AdjustContrastv2":
        with_rank(c.inputs[1], 0)
    return (with_rank_at_least(c.inputs[0], 3),)
