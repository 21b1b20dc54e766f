"""JPEG files, decoded to the very pixels that TensorFlow's libjpeg-turbo gives.

TensorFlow asks the library for its fast inverse transform together with smooth chroma. Pillow, which uses the same
library, offers the accurate transform with smooth chroma, or the fast one with repeated chroma samples. So the planes
of the latter are taken, and the chroma samples, one of each repeated block, are interpolated and converted to RGB here
with the library's own integer arithmetic (ITU-T T.871; libjpeg's "fancy upsampling" is a triangle filter). Only the
accurate transform with plain chroma is out of reach: its chroma is that of the fast one, a few levels off.

    luma 4x4, chroma 2x2      chroma row  10 20  ->  repeated 10 10 20 20  ->  smooth 10 12 18 20
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from .pillow import opened

_END = b"\xff\xd9"
_FILL, _SCAN = 0xFF, 0xDA
_FRAMES = {0xC0 + n for n in range(16)} - {0xC4, 0xC8, 0xCC}  # markers of frame headers; three mean tables
_BLOCK = 8  # samples along one side of a block
_RGB_IDS = [82, 71, 66]
_FAILED = "jpeg::Uncompress failed. Invalid JPEG data or crop window."
_ONE, _HALF = 1 << 16, 1 << 15
_CR_TO_R, _CB_TO_G, _CR_TO_G, _CB_TO_B = (round(factor * _ONE) for factor in (1.402, 0.34414, 0.71414, 1.772))
_SMOOTH = {(2, 1): (4, (1, 2)), (2, 2): (16, (8, 7))}
"""by the factors of subsampling: what the weights add up to, and the rounding of even and odd columns"""


@dataclass(frozen=True, slots=True)
class JpegOptions:
    """What the attrs of the ops ask for: a scale of 1 / ratio, and how exact it has to be."""

    ratio: int = 1
    smooth_chroma: bool = True
    accurate: bool = False
    recover_truncated: bool = False
    columns: tuple[int, int] | None = None
    """the first column to decode, and how many; as in libjpeg, chroma is smooth up to the edge of the part alone"""


def read_jpeg(contents: bytes, channels: int, options: JpegOptions) -> Array:
    """[height, width, channels] of uint8; 0 channels: those of the file, but 3 of a CMYK file."""
    data = contents + _END if options.recover_truncated else contents
    try:
        pixels = _pixels(data, channels, options)
    except (OSError, SyntaxError, ValueError):
        raise failed() from None
    return np.repeat(pixels, 3, axis=2) if channels == 3 and pixels.shape[2] == 1 else pixels


def failed() -> InvalidArgumentError:
    """The error about a file, or a part of one, that cannot be read."""
    return InvalidArgumentError(_FAILED)


def _pixels(data: bytes, channels: int, options: JpegOptions) -> Array:
    image = opened(data, "JPEG")
    if image.mode == "CMYK":
        return _cut(_rgb_of_inks(data, channels, options), options)
    if image.mode == "L" or channels == 1:
        return _cut(_decoded(data, "L", options, fast=not options.accurate)[..., None], options)
    subsampled = any(layer[1:3] != image.layer[0][1:3] for layer in image.layer)
    if _is_rgb(image) or (options.accurate and (options.smooth_chroma or not subsampled)):
        return _cut(_decoded(data, "RGB", options, fast=not options.accurate), options)
    planes = _decoded(data, "YCbCr", options, fast=True)
    if options.accurate:
        planes = np.concatenate([_decoded(data, "L", options, fast=False)[..., None], planes[..., 1:]], axis=2)
    return _joined(planes, image, options)


def _cut(pixels: Array, options: JpegOptions) -> Array:
    """The wanted columns; ValueError if some of them are outside."""
    if options.columns is None:
        return pixels
    start, count = options.columns
    if start < 0 or count <= 0 or start + count > pixels.shape[1]:
        raise ValueError("columns outside of the image")
    return pixels[:, start : start + count]


def _joined(planes: Array, image: Any, options: JpegOptions) -> Array:  # an image of Pillow
    """RGB of planes of luma and repeated chroma. The library decodes from the whole block left of the first column."""
    samplings = [(layer[1], layer[2]) for layer in image.layer]
    width, begin = planes.shape[1], 0
    if options.columns is not None:
        block = _BLOCK // options.ratio * max(samplings)[0]
        begin = options.columns[0] // block * block
        _cut(planes, options)
        planes = planes[:, begin : sum(options.columns)]
    chroma = (_chroma(planes[..., k], width, samplings, k, options) for k in (1, 2))
    pixels = _to_rgb(planes[..., 0], *chroma)
    return pixels if options.columns is None else pixels[:, options.columns[0] - begin :]


def _is_rgb(image: Any) -> bool:  # an image of Pillow
    """Whether the file holds RGB rather than luma and chroma, by the library's rules."""
    if "jfif" in image.info:
        return False
    if "adobe" in image.info:
        return bool(image.info.get("adobe_transform") == 0)
    return [layer[0] for layer in image.layer] == _RGB_IDS


def _decoded(data: bytes, mode: str, options: JpegOptions, fast: bool) -> Array:
    """The samples as Pillow decodes them; `fast`: with the fast transform and repeated chroma."""
    image = opened(data, "JPEG")
    image.draft(mode, None)
    image._size = tuple(-(-side // options.ratio) for side in image.size)
    tile = image.tile[0]
    make = getattr(type(tile), "_make", tuple)
    image.tile = [make((tile[0], (0, 0, *image._size), *tile[2:]))]
    image.decoderconfig = (options.ratio, int(fast))
    return np.asarray(image)


def _rgb_of_inks(data: bytes, channels: int, options: JpegOptions) -> Array:
    """Colours of cyan, magenta, yellow and black."""
    if channels == 1:
        raise ValueError("libjpeg does not convert inks to gray")
    light = 255 - _decoded(data, "CMYK", options, fast=not options.accurate).astype(np.uint32)
    return (light[..., :3] * light[..., 3:] // 255).astype(np.uint8)


def _chroma(plane: Array, width: int, samplings: list[tuple[int, int]], index: int, options: JpegOptions) -> Array:
    """A plane of chroma, smooth where the library would make it so: in an image with more than two samples per row."""
    most = [max(axis) for axis in zip(*samplings, strict=True)]
    block = _BLOCK // options.ratio
    size = block
    while size < _BLOCK and all(m * block % (s * size * 2) == 0 for m, s in zip(most, samplings[index], strict=True)):
        size *= 2  # the transform itself may yield more samples of subsampled chroma
    across, down = (m * block // (s * size) for m, s in zip(most, samplings[index], strict=True))
    samples = plane[::down, ::across].astype(np.int32)
    is_narrow = -(-width // across) <= 2
    if not options.smooth_chroma or block == 1 or is_narrow or (across, down) not in _SMOOTH:
        return plane.astype(np.int32)
    smooth = _smooth_rows(_smooth_columns(samples) if down == 2 else samples, *_SMOOTH[across, down])
    return smooth[: plane.shape[0], : plane.shape[1]]


def _smooth_columns(samples: Array) -> Array:
    """Twice as many rows, four times the value: three parts of the nearer row and one of the other."""
    result = np.empty((2 * len(samples), samples.shape[1]), np.int32)
    result[0::2] = 3 * samples + np.concatenate([samples[:1], samples[:-1]])
    result[1::2] = 3 * samples + np.concatenate([samples[1:], samples[-1:]])
    return result


def _smooth_rows(samples: Array, scale: int, rounding: tuple[int, int]) -> Array:
    """Twice as many columns, divided by `scale`; the columns at both ends have one neighbour only."""
    left = np.concatenate([samples[:, :1], samples[:, :-1]], axis=1)
    right = np.concatenate([samples[:, 1:], samples[:, -1:]], axis=1)
    result = np.empty((len(samples), 2 * samples.shape[1]), np.int32)
    result[:, 0::2] = (3 * samples + left + rounding[0]) // scale
    result[:, 1::2] = (3 * samples + right + rounding[1]) // scale
    return result


def _to_rgb(luma: Array, blue: Array, red: Array) -> Array:
    """Red, green and blue of luma and chroma, in 16-bit fixed point."""
    base, cb, cr = luma.astype(np.int32), blue - 128, red - 128
    colours = (
        base + (_CR_TO_R * cr + _HALF >> 16),
        base + (_HALF - _CB_TO_G * cb - _CR_TO_G * cr >> 16),
        base + (_CB_TO_B * cb + _HALF >> 16),
    )
    pixels: Array = np.clip(np.stack(colours, axis=-1), 0, 255).astype(np.uint8)
    return pixels


def jpeg_shape(contents: bytes) -> tuple[int, int, int]:
    """Height, width and number of components: the frame header's (ITU-T T.81, B.2.2), if a scan follows it."""
    position, shape = 2, None
    while contents[:2] == b"\xff\xd8" and position + 4 <= len(contents) and contents[position] == 0xFF:
        marker = contents[position + 1]
        if marker == _FILL:
            position += 1
            continue
        body = contents[position + 4 : position + 10]
        if marker in _FRAMES and len(body) == 6:
            shape = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big"), body[5]
        if marker == _SCAN and shape is not None:
            return shape
        position += 2 + int.from_bytes(contents[position + 2 : position + 4], "big")
    raise InvalidArgumentError(f"Invalid JPEG data, size {len(contents)}")
