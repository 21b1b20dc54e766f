"""Uncompressed BMP files with 8, 24 or 32 bits per pixel; the former are taken for gray whatever their palette says."""

from __future__ import annotations

import struct

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from ..checks import require

_HEADER = 32  # bytes up to the number of bits


def read_bmp(contents: bytes, channels: int) -> Array:
    """[height, width, channels] of uint8; 0 channels: those of the file. Rows of a negative height go downwards."""
    require(channels != 1, "`channels` must be 0, 3 or 4 for BMP, but got 1")
    if len(contents) < _HEADER:
        raise InvalidArgumentError(
            f"Incomplete bmp content, requires at least {_HEADER} bytes to find the header size, width, height, and "
            f"bpp, got {len(contents)} bytes"
        )
    start, _, width, height, _, bits = struct.unpack_from("<IIiiHH", contents, 10)
    has = bits // 8
    require(has in (1, 3, 4), f"Number of channels inherent in the image must be 1, 3 or 4, was {has}")
    require(width > 0, "Width must be positive")
    require(height != 0, "Height must be nonzero")
    stride = -(-width * has // 4) * 4
    surplus = len(contents) - start - stride * abs(height)
    if surplus < 0:
        raise InvalidArgumentError(
            f"Input size should match (header_size + row_size * abs_height) but they differ by {surplus}"
        )
    rows = np.frombuffer(contents, np.uint8, stride * abs(height), start).reshape(abs(height), stride)
    pixels = rows[:, : width * has].reshape(abs(height), width, has)
    pixels = pixels[::-1] if height > 0 else pixels
    return _in_channels(pixels, channels or has)


def _in_channels(pixels: Array, channels: int) -> Array:
    """Blue, green, red, alpha (or gray) as red, green, blue, alpha."""
    has = pixels.shape[2]
    result = np.full((*pixels.shape[:2], channels), 255, np.uint8)
    colours = min(channels, 3)
    result[..., :colours] = pixels[..., 2::-1] if has >= 3 else pixels
    if channels == has == 4:
        result[..., 3] = pixels[..., 3]
    return result
