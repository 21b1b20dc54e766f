"""Colours of images: contrast, hue, saturation, and conversion between RGB and HSV, all in [0, 1].

Half types are computed in float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..elementwise.choosing import choose
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel


def _check(images: Array) -> None:
    if images.ndim < 1 or images.shape[-1] != 3:
        raise InvalidArgumentError(
            f"images must have 3 channels on their last axis, got shape {shape_text(images.shape)}"
        )


def _channels(images: Array) -> tuple[Array, Array, Array]:
    """Views of the three channels: numpy computes them one by one faster than three numbers at a time."""
    _check(images)
    return images[..., 0], images[..., 1], images[..., 2]


def _joined(channels: Iterable[Array], like: Array) -> Array:
    """One tensor of channels that are computed one by one, so that only one of them takes memory."""
    result = np.empty_like(like, subok=False)
    for index, channel in enumerate(channels):
        result[..., index] = channel
    return result


def _range(red: Array, green: Array, blue: Array) -> tuple[Array, Array]:
    """The largest channel of each pixel, and how far the smallest one is from it."""
    value = np.maximum(np.maximum(red, green), blue)
    return value, value - np.minimum(np.minimum(red, green), blue)


def _sixths(red: Array, green: Array, blue: Array, value: Array, span: Array) -> Array:
    """The hue in sixths of the circle, from -1 to 5; 0 of greys."""
    of_red, of_green = value == red, value == green
    others = choose(of_red, green - blue, choose(of_green, blue - red, red - green))
    others /= np.maximum(span, np.finfo(span.dtype).smallest_subnormal)
    start = np.array([4, 2], span.dtype)[of_green.view(np.int8)]
    start *= ~of_red
    start *= span > 0
    others += start
    return np.asarray(others)


def _parts(sixths: Array) -> Iterator[Array]:
    """For red, green and blue, where between the smallest channel and the largest one they lie, for hues in [0, 6]."""
    for middle in (3, 2, 4):
        part = sixths - middle
        np.abs(part, out=part)
        if middle == 3:  # red is largest around 0 and 6, the others in the middle
            part -= 1
        else:
            np.subtract(2, part, out=part)
        np.minimum(part, 1, out=part)
        yield np.maximum(part, 0, out=part)


def to_hsv(rgb: Array) -> Array:
    """Hue (as a fraction of the circle), saturation and value (Smith, 1978)."""
    channels = _channels(rgb)
    value, span = _range(*channels)
    hue = _sixths(*channels, value, span) / 6
    hue += hue < 0
    saturation = choose(value > 0, span / np.where(value > 0, value, 1), np.zeros((), span.dtype))
    return _joined((hue, saturation, value), rgb)


def to_rgb(hsv: Array) -> Array:
    """Red, green and blue from hue, saturation and value."""
    hue, saturation, value = _channels(hsv)
    rest = 1 - saturation
    return _joined(((rest + saturation * part) * value for part in _parts(hue * 6)), hsv)


@kernel("RGBToHSV")
def rgb_to_hsv(node: Construction) -> Kernel:
    """Hue, saturation and value of red, green and blue."""
    return in_float32(to_hsv, node.output_types[0])


@kernel("HSVToRGB")
def hsv_to_rgb(node: Construction) -> Kernel:
    """Red, green and blue of hue, saturation and value."""
    return in_float32(to_rgb, node.output_types[0])


def _means(images: Array) -> Array:
    """The mean of each channel [batch, channels] of images [batch, pixels, channels], in TensorFlow's order.

    The second half of the pixels is added to the first one, without the pixel in the middle, until one is left.
    """
    pixels = images.shape[1]
    left = pixels - pixels // 2
    sums = images[:, :left].copy()
    sums[:, : pixels - left] += images[:, left:]
    while left > 1:
        pixels, left = left, left - left // 2
        sums[:, : pixels - left] += sums[:, left:pixels]
    return np.asarray(sums[:, 0] * (images.dtype.type(1) / images.dtype.type(images.shape[1])))


@kernel("AdjustContrastv2")
def adjust_contrast(node: Construction) -> Kernel:
    """Each channel's distance from its mean over the image, times a factor."""

    def adjust(images: Array, factor: Array) -> Array:
        require(images.ndim >= 3, f"input must be at least 3-D, got shape{shape_text(images.shape)}")
        require(np.ndim(factor) == 0, f"contrast_factor must be scalar: {shape_text(np.shape(factor))}")
        if not images.size:
            return images
        height, width, channels = images.shape[-3:]
        means = _means(images.reshape(-1, height * width, channels))
        lines, of_line = images.reshape(-1, height, width * channels), np.tile(means[:, None], (1, 1, width))
        result: Array = lines - of_line
        result *= factor
        result += of_line
        return result.reshape(images.shape)

    return in_float32(adjust, node.output_types[0])


@kernel("AdjustHue")
def adjust_hue(node: Construction) -> Kernel:
    """The hue rotated by a fraction of the circle."""

    def adjust(images: Array, delta: Array) -> Array:
        require(np.ndim(delta) == 0, f"delta must be scalar: {shape_text(np.shape(delta))}")
        channels = _channels(images)
        value, span = _range(*channels)
        sixths = _sixths(*channels, value, span)
        sixths += np.mod(delta * 6, 6)
        sixths -= np.floor(sixths / 6) * 6
        least = value - span
        return _joined((least + part * span for part in _parts(sixths)), images)

    return in_float32(adjust, node.output_types[0])


@kernel("AdjustSaturation")
def adjust_saturation(node: Construction) -> Kernel:
    """The saturation times a factor, at most one.

    The distance of each channel from the largest one is the saturation times a number that the hue decides; so it
    grows as the saturation does, at most by as much as makes the saturation one.
    """

    def adjust(images: Array, factor: Array) -> Array:
        require(np.ndim(factor) == 0, f"scale must be scalar: {shape_text(np.shape(factor))}")
        channels = _channels(images)
        value, span = _range(*channels)
        most = np.maximum(value, 0) / np.maximum(span, np.finfo(span.dtype).smallest_subnormal)
        growth = np.clip(factor, 0, most)
        return _joined((value - (value - channel) * growth for channel in channels), images)

    return in_float32(adjust, node.output_types[0])
