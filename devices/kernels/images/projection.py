"""Projective transforms of images: rotations, shears, translations, perspective.

Eight numbers per image map output to input positions. Positions outside the image are mapped back by the fill mode, or
filled.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel

FillMode = Callable[[Array, int], Array]


def _reflect(place: Array, size: int) -> Array:
    """d c b a | a b c d | d c b a"""
    if size <= 1:
        return np.zeros_like(place)
    period = np.float32(2 * size)
    folded = np.where(place < 0, np.where(place < -size, place + period * np.trunc(-place / period), place), place)
    below = np.where(folded < -size, folded + period, -folded - 1)
    above = folded - period * np.trunc(folded / period)
    above = np.where(above >= size, period - above - 1, above)
    return np.clip(np.where(place < 0, below, above), 0, size - 1)


def _wrap(place: Array, size: int) -> Array:
    """a b c d | a b c d | a b c d"""
    if size <= 1:
        return np.zeros_like(place)
    last = np.float32(size - 1)
    below = place + size * (np.trunc(-place / last) + 1)
    above = place - size * np.trunc(place / last)
    return np.clip(np.where(place < 0, below, np.where(place > last, above, place)), 0, last)


_FILL_MODES: dict[bytes, FillMode] = {
    b"CONSTANT": lambda place, size: place,
    b"NEAREST": lambda place, size: np.clip(place, 0, size - 1),
    b"REFLECT": _reflect,
    b"WRAP": _wrap,
}


def _rounded(place: Array) -> Array:
    """The nearest whole position, halves away from zero."""
    return np.asarray(np.trunc(place + np.copysign(np.float32(0.5), place)))


def _read(images: Array, rows: Array, columns: Array, fill: Array) -> Array:
    """The pixels at whole positions [batch, height, width]; `fill` outside."""
    height, width = images.shape[1:3]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    y, x = (np.where(inside, place, 0).astype(np.intp) for place in (rows, columns))
    batch = np.arange(images.shape[0]).reshape(-1, 1, 1)
    return np.where(inside[..., None], images[batch, y, x], fill)


def _blended(images: Array, y: Array, x: Array, fill: Array) -> Array:
    """The linear blend of the four pixels around each position."""
    top, left = np.floor(y), np.floor(x)
    near_x, far_x = (left + 1 - x)[..., None], (x - left)[..., None]
    upper = near_x * _read(images, top, left, fill) + far_x * _read(images, top, left + 1, fill)
    lower = near_x * _read(images, top + 1, left, fill) + far_x * _read(images, top + 1, left + 1, fill)
    return np.asarray((top + 1 - y)[..., None] * upper + (y - top)[..., None] * lower)


@kernel("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def image_projective_transform(node: Construction) -> Kernel:
    """For each output pixel the input pixel (or blend of four) at the position that the transform gives."""
    nearest = node.attrs["interpolation"].upper() == b"NEAREST"
    mode = node.attrs["fill_mode"].upper()
    if mode not in _FILL_MODES:
        raise InvalidArgumentError(f"Invalid fill_mode {mode.decode()}; write one of CONSTANT, NEAREST, REFLECT, WRAP")
    back = _FILL_MODES[mode]

    def transform(images: Array, transforms: Array, size: Array, fill: Array | None = None) -> Array:
        require(images.ndim == 4, f"images must have rank 4, got shape {shape_text(images.shape)}")
        require(
            transforms.ndim == 2 and transforms.shape[1] == 8 and transforms.shape[0] in (1, images.shape[0]),
            "Input transform should be num_images x 8 or 1 x 8",
        )
        require(size.shape == (2,), f"output shape must be 1-dimensional, two elements: {shape_text(size.shape)}")
        outside = np.asarray(0 if fill is None else fill, images.dtype)
        require(outside.ndim == 0, f"fill_value must be a scalar{shape_text(outside.shape)}")
        if not images.size:
            return np.full((images.shape[0], int(size[0]), int(size[1]), images.shape[3]), outside)
        y, x = np.meshgrid(*(np.arange(int(n), dtype=np.float32) for n in size), indexing="ij")
        t = transforms.astype(np.float32, copy=False).T[:, :, None, None]
        scale = t[6] * x + t[7] * y + 1
        shape = (images.shape[0], *y.shape)
        in_x = np.broadcast_to(back((t[0] * x + t[1] * y + t[2]) / scale, images.shape[2]), shape)
        in_y = np.broadcast_to(back((t[3] * x + t[4] * y + t[5]) / scale, images.shape[1]), shape)
        if nearest:
            return _read(images, _rounded(in_y), _rounded(in_x), outside)
        return _blended(images, in_y, in_x, outside).astype(images.dtype, copy=False)

    return in_float32(transform, node.output_types[0])
