"""Projective transforms of images: rotations, shears, translations, perspective.

Eight numbers per image map output to input positions. Positions outside the image are mapped back by the fill mode, or
filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..half_types import in_float32
from ..output_size import output_shape
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


class _Pixels:
    """Images channel by channel with a border of the fill value, so that a pixel outside is a pixel of the border.

    A place next to the border reads as any other one, and numpy is faster at reading single numbers of one channel than
    at reading a few channels of a pixel.
    """

    def __init__(self, images: Array, fill: Array) -> None:
        batch, self.height, self.width, channels = images.shape
        bordered = np.full((channels, batch, self.height + 2, self.width + 2), fill, images.dtype)
        bordered[:, :, 1:-1, 1:-1] = np.moveaxis(images, -1, 0)
        self.channels = bordered.reshape(channels, -1)
        self._first = np.arange(batch).reshape(-1, 1, 1) * (self.height + 2) + 1

    def rows(self, places: Array) -> Array:
        """Where the rows at whole positions [batch, height, width] begin in each channel."""
        rows = self._inside(places, self.height)
        rows += self._first
        rows *= self.width + 2
        return rows

    def columns(self, places: Array) -> Array:
        """Where whole positions are in a row."""
        columns = self._inside(places, self.width)
        columns += 1
        return columns

    @staticmethod
    def _inside(places: Array, size: int) -> Array:
        """The nearest positions of pixels and the border; what is not a number is in the border."""
        return np.asarray(np.fmax(np.fmin(places, size), -1).astype(np.intp))


def _nearest(pixels: _Pixels, y: Array, x: Array) -> Iterator[Array]:
    """Each channel of the pixels that are nearest to the positions."""
    places = pixels.rows(_rounded(y)) + pixels.columns(_rounded(x))
    return (channel.take(places, mode="clip") for channel in pixels.channels)


def _blended(pixels: _Pixels, y: Array, x: Array) -> Iterator[Array]:
    """Each channel of the linear blend of the four pixels around each position."""
    top, left = np.floor(y), np.floor(x)
    near_x, far_x, near_y, far_y = left + 1 - x, x - left, top + 1 - y, y - top
    columns = [pixels.columns(places) for places in (left, left + 1)]
    corners = [[row + column for column in columns] for row in (pixels.rows(top), pixels.rows(top + 1))]
    for channel in pixels.channels:
        above, below = (
            near_x * channel.take(near, mode="clip") + far_x * channel.take(far, mode="clip") for near, far in corners
        )
        yield near_y * above + far_y * below


@kernel("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def image_projective_transform(node: Construction) -> Kernel:
    """For each output pixel the input pixel (or blend of four) at the position that the transform gives."""
    sample = _nearest if node.attrs["interpolation"].upper() == b"NEAREST" else _blended
    mode = node.attrs["fill_mode"].upper()
    if mode not in _FILL_MODES:
        raise InvalidArgumentError(f"Invalid fill_mode {mode.decode()}; write one of CONSTANT, NEAREST, REFLECT, WRAP")
    back = _FILL_MODES[mode]

    def transform(images: Array, transforms: Array, size: Array, fill: Array | None = None) -> Array:
        if images.ndim != 4:
            raise InvalidArgumentError(f"images must have rank 4, got shape {shape_text(images.shape)}")
        require(
            transforms.ndim == 2 and transforms.shape[1] == 8 and transforms.shape[0] in (1, images.shape[0]),
            "Input transform should be num_images x 8 or 1 x 8",
        )
        if size.shape != (2,):
            raise InvalidArgumentError(f"output shape must be 1-dimensional, two elements: {shape_text(size.shape)}")
        require(bool((size > 0).all()), "output dimensions must be positive")
        outside = np.asarray(0 if fill is None else fill, images.dtype)
        if outside.ndim != 0:
            raise InvalidArgumentError(f"fill_value must be a scalar{shape_text(outside.shape)}")
        output_shape((images.shape[0], *size.tolist(), images.shape[3]), images.dtype)
        if not images.size:
            return np.full((images.shape[0], int(size[0]), int(size[1]), images.shape[3]), outside)
        height, width = (int(n) for n in size)
        y, x = np.arange(height, dtype=np.float32)[:, None], np.arange(width, dtype=np.float32)
        t = transforms.astype(np.float32, copy=False).T[:, :, None, None]
        scale = t[6] * x + t[7] * y + 1
        shape = (images.shape[0], height, width)
        in_x = np.broadcast_to(back((t[0] * x + t[1] * y + t[2]) / scale, images.shape[2]), shape)
        in_y = np.broadcast_to(back((t[3] * x + t[4] * y + t[5]) / scale, images.shape[1]), shape)
        result = np.empty((*shape, images.shape[3]), images.dtype)
        for number, channel in enumerate(sample(_Pixels(images, outside), in_y, in_x)):
            result[..., number] = channel
        return result

    return in_float32(transform, node.output_types[0])
