"""Colours of images: conversion between RGB and HSV, and contrast.

The order of the operations is TensorFlow's, so that the bits are its own; half types are rounded after each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..elementwise.choosing import choose
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel, simple

_BLOCK = 1 << 13  # pixels


def by_pixel(images: Array, compute: Callable[[Array, Array, Array], Iterable[Array]]) -> Array:
    """The images whose channels `compute` gives, from three vectors of channels.

    It gets a block of pixels at a time, so that what lies between fits in the cache, and each channel in one piece.
    """
    pixels = images.reshape(-1, 3)
    result = np.empty(pixels.shape, pixels.dtype)
    for start in range(0, len(pixels), _BLOCK):
        block = pixels[start : start + _BLOCK]
        red, green, blue = (_flushed(block[:, channel].copy()) for channel in range(3))
        for index, channel in enumerate(compute(red, green, blue)):
            result[start : start + _BLOCK, index] = channel
    return result.reshape(images.shape)


def _flushed(numbers: Array) -> Array:
    """`numbers` with zeros in place of subnormal ones, which would have infinite reciprocals, as TensorFlow has them.

    It computes float16 in float32, where its subnormal numbers are normal ones.
    """
    if numbers.dtype != np.float16:
        exponents = np.float64 if numbers.dtype == np.float64 else np.float32  # those of bfloat16, too
        numbers *= np.abs(numbers) >= np.finfo(exponents).smallest_normal
    return numbers


def value_and_span(first: Array, second: Array, third: Array) -> tuple[Array, Array]:
    """The largest channel of each pixel, and how far the smallest one is from it.

    The order matters only for what is no number: a later channel counts unless an earlier one is larger (or smaller).
    """
    value = choose(second < first, first, second)
    value = choose(third < value, value, third)
    least = choose(second > first, first, second)
    return value, _flushed(value - choose(third > least, least, third))


def saturation_of(value: Array, span: Array) -> Array:
    """The part of the largest channel that the span is; 0 where that channel is not positive."""
    return np.asarray(choose(value > 0, span / value, np.zeros_like(value)))


def hue_of(channels: tuple[Array, Array, Array], value: Array, span: Array, scale: Array, third: Array) -> Array:
    """The hue as a fraction of the circle; 0 of greys.

    `scale` is a sixth over the span; the `third` of the circle where green begins is added in its own type.
    """
    red, green, blue = channels
    of_red, of_green = value == red, value == green
    hue = scale * choose(of_red, green - blue, choose(of_green, blue - red, red - green))
    start = choose(of_red, -third * 0, choose(of_green, third, third * 2))  # -0 leaves the sign of a zero as it is
    hue = (hue + start).astype(hue.dtype, copy=False)
    hue = choose(span > 0, hue, np.zeros_like(hue))
    return np.asarray(choose(hue < 0, hue + hue.dtype.type(1), hue))


def _to_hsv(red: Array, green: Array, blue: Array) -> tuple[Array, Array, Array]:
    """Hue (as a fraction of the circle), saturation and value (Smith, 1978)."""
    one, six = red.dtype.type(1), red.dtype.type(6)
    value, span = value_and_span(red, green, blue)
    hue = hue_of((red, green, blue), value, span, one / span * (one / six), np.asarray(red.dtype.type(2) / six))
    return hue, saturation_of(value, span), value


def _parts(sixths: Array) -> Iterator[Array]:
    """For red, green and blue, where between the smallest channel and the largest one they lie, for hues in [0, 6]."""
    one, two = sixths.dtype.type(1), sixths.dtype.type(2)
    for middle in (3, 2, 4):
        part = sixths - sixths.dtype.type(middle)
        np.abs(part, out=part)
        if middle == 3:  # red is largest around 0 and 6, the others in the middle
            part -= one
        else:
            np.subtract(two, part, out=part)
        np.maximum(part, one - one, out=part)
        yield np.minimum(part, one, out=part)


def _to_rgb(hue: Array, saturation: Array, value: Array) -> Iterator[Array]:
    """Red, green and blue from hue, saturation and value."""
    rest = hue.dtype.type(1) - saturation
    for part in _parts(hue * hue.dtype.type(6)):
        yield (rest + saturation * part) * value


def _conversion(convert: Callable[[Array, Array, Array], Iterable[Array]]) -> Kernel:
    def checked(images: Array) -> Array:
        if images.ndim < 1:
            raise InvalidArgumentError(f"input must be at least 1D{shape_text(images.shape)}")
        count = images.shape[-1]
        require(count == 3, f"input must have 3 channels but input only has {count} channels.")
        return by_pixel(images, convert)

    return checked


simple("RGBToHSV", _conversion(_to_hsv))
simple("HSVToRGB", _conversion(_to_rgb))


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
        if images.ndim < 3:
            raise InvalidArgumentError(f"input must be at least 3-D, got shape{shape_text(images.shape)}")
        if np.ndim(factor) != 0:
            raise InvalidArgumentError(f"contrast_factor must be scalar: {shape_text(np.shape(factor))}")
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


@kernel("AdjustContrast")
def adjust_contrast_within(node: Construction) -> Kernel:
    """As the second version, in float32 for images of any type, and then not above `max_value` or below `min_value`.

    The mean is summed up in another order: column by column.
    """

    def adjust(images: Array, factor: Array, least: Array, most: Array) -> Array:
        if images.ndim < 3:
            raise InvalidArgumentError(f"input must be at least 3-D, got shape{shape_text(images.shape)}")
        for name, value in (("contrast_factor", factor), ("min_value", least), ("max_value", most)):
            if np.ndim(value) != 0:
                raise InvalidArgumentError(f"{name} must be scalar: {shape_text(np.shape(value))}")
        if not images.size:
            return images.astype(np.float32)
        height, width, channels = images.shape[-3:]
        result = images.reshape(-1, height, width, channels).astype(np.float32, "C")
        means = _column_by_column(result) / np.float32(height * width)
        result -= means
        result *= factor
        result += means
        result = choose(most < result, most, result)
        limited: Array = choose(result < least, least, result)
        return limited.reshape(images.shape)

    return adjust


def _column_by_column(images: Array) -> Array:
    """The sums of each channel [batch, 1, 1, channels] of images [batch, height, width, channels], one by one."""
    columns = images.transpose(0, 2, 1, 3).reshape(len(images), -1, images.shape[3])
    return np.add.accumulate(columns, axis=1)[:, -1, None, None]
