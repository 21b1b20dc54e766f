"""Colours of images: contrast, hue, saturation, and conversion between RGB and HSV, all in [0, 1].

Half types are computed in float32.
"""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel


def _check(images: Array) -> None:
    if images.ndim < 1 or images.shape[-1] != 3:
        raise InvalidArgumentError(
            f"images must have 3 channels on their last axis, got shape {shape_text(images.shape)}"
        )


def to_hsv(rgb: Array) -> Array:
    """Hue (as a fraction of the circle), saturation and value (Smith, 1978)."""
    _check(rgb)
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    value, least = rgb.max(axis=-1), rgb.min(axis=-1)
    span = value - least
    safe = np.where(span > 0, span, 1)
    sixths = np.where(
        value == red,
        (green - blue) / safe,
        np.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    hue = np.where(span > 0, sixths / 6, 0)
    saturation = np.where(value > 0, span / np.where(value > 0, value, 1), 0)
    return np.stack([hue + (hue < 0), saturation, value], axis=-1).astype(rgb.dtype, copy=False)


def to_rgb(hsv: Array) -> Array:
    """Red, green and blue from hue, saturation and value."""
    _check(hsv)
    hue, saturation, value = hsv[..., 0] * 6, hsv[..., 1], hsv[..., 2]
    parts = [np.abs(hue - 3) - 1, 2 - np.abs(hue - 2), 2 - np.abs(hue - 4)]
    channels = [((1 - saturation) + saturation * np.clip(part, 0, 1)) * value for part in parts]
    return np.stack(channels, axis=-1).astype(hsv.dtype, copy=False)


@kernel("RGBToHSV")
def rgb_to_hsv(node: Construction) -> Kernel:
    """Hue, saturation and value of red, green and blue."""
    return in_float32(to_hsv, node.output_types[0])


@kernel("HSVToRGB")
def hsv_to_rgb(node: Construction) -> Kernel:
    """Red, green and blue of hue, saturation and value."""
    return in_float32(to_rgb, node.output_types[0])


@kernel("AdjustContrastv2")
def adjust_contrast(node: Construction) -> Kernel:
    """Each channel's distance from its mean over the image, times a factor."""

    def adjust(images: Array, factor: Array) -> Array:
        require(images.ndim >= 3, f"input must be at least 3-D, got shape{shape_text(images.shape)}")
        require(np.ndim(factor) == 0, f"contrast_factor must be scalar: {shape_text(np.shape(factor))}")
        mean = images.mean(axis=(-3, -2), keepdims=True, dtype=images.dtype)
        return np.asarray((images - mean) * factor + mean, images.dtype)

    return in_float32(adjust, node.output_types[0])


@kernel("AdjustHue")
def adjust_hue(node: Construction) -> Kernel:
    """The hue rotated by a fraction of the circle."""

    def adjust(images: Array, delta: Array) -> Array:
        require(np.ndim(delta) == 0, f"delta must be scalar: {shape_text(np.shape(delta))}")
        hsv = to_hsv(images)
        hsv[..., 0] = np.mod(hsv[..., 0] + delta, 1)
        return to_rgb(hsv)

    return in_float32(adjust, node.output_types[0])


@kernel("AdjustSaturation")
def adjust_saturation(node: Construction) -> Kernel:
    """The saturation times a factor, at most one."""

    def adjust(images: Array, factor: Array) -> Array:
        require(np.ndim(factor) == 0, f"scale must be scalar: {shape_text(np.shape(factor))}")
        hsv = to_hsv(images)
        hsv[..., 1] = np.clip(hsv[..., 1] * factor, 0, 1)
        return to_rgb(hsv)

    return in_float32(adjust, node.output_types[0])
