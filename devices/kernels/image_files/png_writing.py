"""PNG files byte for byte as libpng writes them by default: its choice of filters, its zlib settings, its parts.

A row is written as the difference to what one of five filters predicts for each byte, numbered as in ISO/IEC 15948:

    0  nothing    1  the left pixel's byte    2  that above    3  the mean of both, rounded down    4  Paeth's choice

libpng takes the filter whose row has the least sum of absolute values, the bytes read as signed, the first of equals.
The compressed bytes are libpng's where Python has zlib itself, not a faster one; not for level 0 of large images,
where zlib cuts its blocks where rows happen to fill its buffers.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from ....graph.dtypes import Array
from .png_files import COLOUR_TYPES, SIGNATURE, paeth

_PART_BYTES = 8192  # of compressed data
_MOST_WINDOW_BITS, _MEMORY_LEVEL = 15, 9
_SMALL_BYTES, _LOOK_AHEAD = 16384, 262  # libpng makes zlib's window smaller for images up to this size


def write_png(image: Array, compression: int) -> bytes:
    """A file of [height, width, 1 to 4 channels] of uint8 or uint16; compression is zlib's level, -1 its default."""
    height, width, channels = image.shape
    depth = 8 * image.itemsize
    rows = image.astype(image.dtype.newbyteorder(">"), order="C").view(np.uint8).reshape(height, -1)
    strategy = zlib.Z_FILTERED if height * width > 1 else zlib.Z_DEFAULT_STRATEGY
    packed = _compressed(_filtered(rows, channels * image.itemsize).tobytes(), compression, strategy)
    head = struct.pack(">IIBBBBB", width, height, depth, COLOUR_TYPES[channels], 0, 0, 0)
    parts = (packed[start : start + _PART_BYTES] for start in range(0, len(packed), _PART_BYTES))
    chunks = ((b"IHDR", head), *((b"IDAT", part) for part in parts), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, body) for name, body in chunks)


def _filtered(rows: Array, step: int) -> Array:
    """The rows of bytes, whose pixels are `step` bytes apart, each behind the number of its filter."""
    height, row_bytes = rows.shape
    padded = np.zeros((height + 1, row_bytes + step), np.int16)
    padded[1:, step:] = rows
    here, left, above, corner = padded[1:, step:], padded[1:, :-step], padded[:-1, step:], padded[:-1, :-step]
    predictions = {0: np.zeros_like(here)}
    if row_bytes > step:
        predictions[1] = left
    if height > 1:
        predictions[2] = above
    if row_bytes > step and height > 1:
        predictions |= {3: left + above >> 1, 4: paeth(left, above, corner)}
    differences = np.stack([here - predicted for predicted in predictions.values()]).astype(np.uint8)
    best = np.abs(differences.view(np.int8).astype(np.int64)).sum(2).argmin(0)
    numbers = np.array(list(predictions), np.uint8)[best]
    return np.concatenate([numbers[:, None], differences[best, np.arange(height)]], axis=1)


def _compressed(data: bytes, level: int, strategy: int) -> bytes:
    """zlib's stream, with the smallest window that holds all of small data."""
    bits = _MOST_WINDOW_BITS
    while len(data) <= _SMALL_BYTES and len(data) + _LOOK_AHEAD <= 1 << (bits - 1):
        bits -= 1
    packer = zlib.compressobj(level, zlib.DEFLATED, bits, _MEMORY_LEVEL, strategy)
    stream = packer.compress(data) + packer.flush()
    return _with_least_window(stream, len(data)) if len(data) <= _SMALL_BYTES else stream


def _with_least_window(stream: bytes, size: int) -> bytes:
    """The stream whose head asks a reader for no larger window than `size` bytes need (RFC 1950)."""
    method, check = stream[0], stream[1]
    window = method >> 4
    while window and size <= 1 << (window + 7):
        window -= 1
    method = method & 0x0F | window << 4
    check &= 0xE0
    return bytes([method, check + 31 - ((method << 8) + check) % 31]) + stream[2:]


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
