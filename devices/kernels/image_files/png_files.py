"""Reads PNG files (ISO/IEC 15948): 8 and 16 bits per sample, gray or RGB, with and without alpha, and palettes.

Pillow unpacks what has one byte per sample, or gray of two. It has no place for more than that, so that colours of 16
bits are unpacked here: row filters that need their own row's result run along the image's diagonals, all rows at once.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from .pillow import opened

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by number of channels
_SAMPLES = {colour: channels for channels, colour in COLOUR_TYPES.items()}
_PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
"""first row, first column and steps of the passes of interlaced images (Adam7)"""
_RED, _GREEN, _BLUE, _SHIFT = 9797, 19234, 3737, 15  # the weights TensorFlow gives libpng, as fractions of 2^15


def read_png(contents: bytes, channels: int, dtype: np.dtype[np.unsignedinteger]) -> Array:
    """[height, width, channels]; 0 channels: those of the file. Samples of 16 bits lose half of them in uint8."""
    if len(contents) < 33 or contents[12:16] != b"IHDR":
        raise InvalidArgumentError("Invalid PNG. Failed to initialize decoder.")
    depth, colour = contents[24], contents[25]
    try:
        if depth == 16 and colour in _SAMPLES and colour:
            pixels, alpha = _wide_pixels(contents, _SAMPLES[colour]), np.array((1 << depth) - 1)
        else:
            pixels, alpha = _pillow_pixels(contents, depth)
    except (OSError, SyntaxError, ValueError, zlib.error):
        raise InvalidArgumentError(f"Invalid PNG data, size {len(contents)}") from None
    return _in_type(_in_channels(pixels, channels or pixels.shape[2], alpha), dtype)


def _pillow_pixels(contents: bytes, depth: int) -> tuple[Array, Array]:
    """The pixels, and what alpha is made of if it is wanted and they have none.

    libpng fills it with the largest sample of the file's depth, even where it widens the colours themselves; a level of
    gray that the file names as transparent counts below eight bits only.
    """
    image = opened(contents, "PNG")
    image.load()
    alpha, tint = np.array((1 << depth) - 1), image.info.get("transparency")
    if image.mode == "P":
        return _coloured(np.asarray(image), image.getpalette("RGB"), tint), alpha
    pixels = np.asarray(image)
    if image.mode == "1":
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    pixels = pixels if pixels.dtype == np.uint8 else pixels.astype(np.uint16)
    if isinstance(tint, int) and depth < 8:
        level = tint if image.mode == "1" else tint * 255 // ((1 << depth) - 1)
        alpha = np.where(pixels == level, 0, 255)[..., None]
    return pixels.reshape(*pixels.shape[:2], -1), alpha


def _coloured(indices: Array, palette: list[int], transparency: bytes | int | None) -> Array:
    """The colours of the indices; with alpha if the file has it."""
    colours = np.zeros((256, 3), np.uint8)
    table = np.array(palette, np.uint8).reshape(-1, 3)
    colours[: len(table)] = table
    if transparency is None:
        return colours[indices]
    alpha = np.full(256, 255, np.uint8)
    if isinstance(transparency, int):
        alpha[transparency] = 0
    else:
        alpha[: len(transparency)] = np.frombuffer(transparency, np.uint8)
    return np.concatenate([colours, alpha[:, None]], axis=1)[indices]


def _in_channels(pixels: Array, channels: int, alpha: Array) -> Array:
    """Colours made gray or gray repeated, alpha dropped or added."""
    has = pixels.shape[2]
    if channels == has:
        return pixels
    colours = pixels[..., :1] if has <= 2 else pixels[..., :3]
    if channels == 1:
        return colours if has <= 2 else _gray(colours)
    colours = np.broadcast_to(colours, (*colours.shape[:2], 3))
    if channels == 3:
        return np.ascontiguousarray(colours)
    added = np.broadcast_to(alpha.astype(pixels.dtype), (*pixels.shape[:2], 1))
    return np.concatenate([colours, pixels[..., has - 1 :] if has in (2, 4) else added], axis=2)


def _gray(colours: Array) -> Array:
    """The weighted mean of red, green and blue: rounded down in 8 bits, to nearest in 16."""
    rounding = 0 if colours.dtype == np.uint8 else 1 << _SHIFT - 1
    red, green, blue = np.moveaxis(colours.astype(np.uint32), 2, 0)
    gray: Array = (_RED * red + _GREEN * green + _BLUE * blue + np.uint32(rounding)) >> _SHIFT
    return gray.astype(colours.dtype)[..., None]


def _in_type(pixels: Array, dtype: np.dtype[np.unsignedinteger]) -> Array:
    if pixels.dtype == dtype:
        return pixels
    if dtype == np.uint8:
        return (pixels >> 8).astype(np.uint8)
    return pixels.astype(np.uint16) * np.uint16(257)


def _chunks(contents: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = len(SIGNATURE)
    while position + 12 <= len(contents):
        (size,) = struct.unpack_from(">I", contents, position)
        yield contents[position + 4 : position + 8], contents[position + 8 : position + 8 + size]
        position += size + 12


def _wide_pixels(contents: bytes, channels: int) -> Array:
    """Samples of 16 bits, of any number of channels."""
    width, height = struct.unpack_from(">II", contents, 16)
    data = zlib.decompress(b"".join(body for name, body in _chunks(contents) if name == b"IDAT"))
    pixels = np.empty((height, width, channels), np.uint16)
    start = 0
    for row, column, down, across in _PASSES if contents[28] else [(0, 0, 1, 1)]:
        part = pixels[row::down, column::across]
        if not part.size:
            continue
        stride = part.shape[1] * channels * 2 + 1
        rows = np.frombuffer(data, np.uint8, part.shape[0] * stride, start).reshape(part.shape[0], stride)
        start += rows.size
        part[...] = _unfiltered(rows[:, 0], rows[:, 1:], 2 * channels).view(">u2").reshape(part.shape)
    return pixels


def _unfiltered(filters: Array, rows: Array, step: int) -> Array:
    """The bytes of the rows, whose pixels are `step` bytes apart.

    Pixel (r, c) may need those at (r, c - 1), (r - 1, c) and (r - 1, c - 1): all pixels with equal r + c are free of
    each other. With a border of zeros, and row r moved r pixels to the right, they stand in one column.
    """
    height, width = len(rows), rows.shape[1] // step
    skewed = np.zeros((height + 1, height + width + 1, step), np.int16)
    raw = rows.reshape(height, width, step)
    kinds = filters.astype(np.intp)[:, None]
    for diagonal in range(height + width - 1):
        r = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        at = diagonal + 1
        left, above, corner = skewed[r + 1, at - 1], skewed[r, at - 1], skewed[r, at - 2]
        choices = np.zeros_like(left), left, above, left + above >> 1, paeth(left, above, corner)
        predicted = np.choose(kinds[r], choices)
        skewed[r + 1, at] = (raw[r, diagonal - r] + predicted) & 0xFF
    places = np.arange(height)[:, None] + np.arange(width) + 1
    return np.ascontiguousarray(skewed[np.arange(1, height + 1)[:, None], places].astype(np.uint8).reshape(height, -1))


def paeth(left: Array, above: Array, corner: Array) -> Array:
    """Whichever neighbour is nearest to left + above - corner."""
    a, b, c = abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)
    return np.where((a <= b) & (a <= c), left, np.where(b <= c, above, corner))
