"""Adjusted hues and saturations of images, with the bits of TensorFlow.

The circle of hues has six sectors. In each of them one channel has the largest value, one the smallest, and the third
goes from one of them to the other:

    sector    0       1       2       3       4       5
    largest   red     green   green   blue    blue    red
    smallest  blue    blue    red     red     green   green

Half types are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..elementwise.choosing import choose
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel
from .colour import by_pixel, hue_of, saturation_of, value_and_span

_Adjust = Callable[[Array, Array, Array, Array], Iterator[Array]]


def _sectors(red: Array, green: Array, blue: Array) -> Array:
    """The sector of each pixel; of equal channels, and of those that are no numbers, the one that TensorFlow takes."""
    of_green = np.where(blue < red, np.int8(1), np.where(blue > green, np.int8(3), np.int8(2)))
    of_others = np.where(blue < green, np.int8(0), np.where(blue > red, np.int8(4), np.int8(5)))
    return np.where(red < green, of_green, of_others)


def _by_size(sectors: Array, red: Array, green: Array, blue: Array) -> tuple[Array, Array, Array]:
    """The largest, the third and the smallest channel of pixels in these sectors."""
    is_0, is_1, is_2, is_3, is_4, is_5 = (sectors == sector for sector in range(6))
    return (
        choose(is_0 | is_5, red, choose(is_1 | is_2, green, blue)),
        choose(is_1 | is_4, red, choose(is_0 | is_3, green, blue)),
        choose(is_2 | is_3, red, choose(is_4 | is_5, green, blue)),
    )


def _by_colour(sectors: Array, largest: Array, third: Array, smallest: Array) -> Iterator[Array]:
    """Red, green and blue of pixels in these sectors."""
    is_0, is_1, is_2, is_3, is_4, is_5 = (sectors == sector for sector in range(6))
    yield choose(is_0 | is_5, largest, choose(is_2 | is_3, smallest, third))
    yield choose(is_1 | is_2, largest, choose(is_4 | is_5, smallest, third))
    yield choose(is_3 | is_4, largest, choose(is_0 | is_1, smallest, third))


def _turned(red: Array, green: Array, blue: Array, delta: Array) -> Iterator[Array]:
    """The pixels with each hue turned by `delta` of the circle."""
    sectors = _sectors(red, green, blue)
    largest, third, smallest = _by_size(sectors, red, green, blue)
    span = largest - smallest
    place = (third - smallest) / span
    sixths = sectors + choose(sectors & 1 != 0, 1 - place, place)
    sixths = choose(largest == smallest, np.zeros_like(sixths), sixths)
    sixths += delta * np.float32(6)
    sixths -= np.floor(sixths / 6) * 6
    sixths -= (sixths == 6) * np.float32(6)  # what is just below zero is rounded to a whole turn
    sectors = np.fmin(np.floor(sixths), 5).astype(np.int8)
    place = sixths - sectors
    third = smallest + choose(sectors & 1 != 0, 1 - place, place) * span
    return _by_colour(sectors, largest, third, smallest)


def _saturated(red: Array, green: Array, blue: Array, factor: Array) -> Iterator[Array]:
    """The pixels with each saturation times `factor`, but at most one."""
    value, span = value_and_span(blue, green, red)
    sixths = hue_of((red, green, blue), value, span, 1 / (6 * span), np.array(2 / 6)) * np.float32(6)
    sixths = np.fmin(sixths, 6)  # of what is no number, too
    saturation = np.minimum(np.fmax(saturation_of(value, span) * factor, 0), 1)
    chroma = saturation * value
    rest = value - chroma
    chroma = choose(sixths < 6, chroma, np.zeros_like(chroma))  # a whole turn, to which hues are rounded, has no sector
    third = chroma * (1 - np.abs(sixths - np.floor(sixths / 2) * 2 - 1))
    sectors = np.minimum(sixths, 5).astype(np.int8)
    return (part + rest for part in _by_colour(sectors, chroma, third, np.zeros_like(chroma)))


def _adjustment(node: Construction, adjust: _Adjust, factor_name: str) -> Kernel:
    """`adjust` for images of three channels and one number."""

    def checked(images: Array, factor: Array) -> Array:
        if images.ndim < 3:
            raise InvalidArgumentError(f"input must be at least 3-D, got shape{shape_text(images.shape)}")
        if np.ndim(factor) != 0:
            raise InvalidArgumentError(f"{factor_name} must be scalar: {shape_text(np.shape(factor))}")
        count = images.shape[-1]
        require(count == 3, f"input must have 3 channels but instead has {count} channels.")
        return by_pixel(images, lambda red, green, blue: adjust(red, green, blue, factor))

    return in_float32(checked, node.output_types[0])


@kernel("AdjustHue")
def adjust_hue(node: Construction) -> Kernel:
    """The hue turned by a fraction of the circle."""
    return _adjustment(node, _turned, "delta")


@kernel("AdjustSaturation")
def adjust_saturation(node: Construction) -> Kernel:
    """The saturation times a factor, at most one."""
    return _adjustment(node, _saturated, "scale")
