"""Shape functions of the ops on image files: [height, width, channels], sizes known from the file alone."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import partly
from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape


def _channels(c: ShapeContext) -> int | None:
    """The wanted number of channels; None if the file decides."""
    with_rank(c.inputs[0], 0)
    channels = int(c.attrs["channels"])
    if channels < 0:
        raise InvalidArgumentError(f"channels must be non-negative, got {channels}")
    return channels or None


@shape_fn("DecodePng", "DecodeJpeg", "DecodeBmp")
def decode_one(c: ShapeContext) -> Sequence[Shape]:
    """One image."""
    return ((None, None, _channels(c)),)


@shape_fn("DecodeImage")
def decode_image(c: ShapeContext) -> Sequence[Shape]:
    """One image, or all frames of an animation, which have an axis of their own."""
    channels = _channels(c)
    return (None if c.attrs["expand_animations"] else (None, None, channels),)


@shape_fn("DecodeGif")
def decode_gif(c: ShapeContext) -> Sequence[Shape]:
    """All frames, in three channels."""
    with_rank(c.inputs[0], 0)
    return ((None, None, None, 3),)


@shape_fn("DecodeAndCropJpeg")
def decode_and_crop(c: ShapeContext) -> Sequence[Shape]:
    """The crop window is (y, x, height, width)."""
    channels = _channels(c)
    merge_dims(with_rank(c.inputs[1], 1)[0], 4)
    window = partly(c, 1)
    height, width = (None, None) if window is None else window[2:4]
    return ((height, width, channels),)


@shape_fn("ExtractJpegShape")
def extract_jpeg_shape(c: ShapeContext) -> Sequence[Shape]:
    """Height, width and channels."""
    with_rank(c.inputs[0], 0)
    return ((3,),)


@shape_fn("EncodePng")
def encode_png(c: ShapeContext) -> Sequence[Shape]:
    """One file for each image."""
    images = with_rank_at_least(c.inputs[0], 3)
    return (None if images is None else images[:-3],)


@shape_fn("EncodeJpeg", "EncodeJpegVariableQuality")
def encode_jpeg(c: ShapeContext) -> Sequence[Shape]:
    """One file."""
    with_rank(c.inputs[0], 3)
    return ((),)
