"""GIF files: every frame painted over the one before it, as TensorFlow does it, whatever its disposal says.

A frame covers a rectangle, and its transparent pixels leave what was there. Pillow unpacks the indices of one frame at
a time, which is handed to it as a file of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from .pillow import opened

_EXTENSION, _IMAGE, _END = 0x21, 0x2C, 0x3B
_CONTROL = 0xF9  # the extension that names the transparent index
_GRAYS = bytes(np.repeat(np.arange(256, dtype=np.uint8), 3))


@dataclass(frozen=True, slots=True)
class _Frame:
    x: int
    y: int
    colours: Array
    indices: Array
    transparent: int | None


def _palette(contents: bytes, position: int, flags: int) -> tuple[bytes, int]:
    """The palette that the flags announce (empty if none), and the position behind it."""
    size = 3 * (2 << (flags & 7)) if flags & 0x80 else 0
    return contents[position : position + size], position + size


def _behind_blocks(contents: bytes, position: int) -> int:
    while contents[position]:
        position += contents[position] + 1
    return position + 1


def _indices(width: int, height: int, flags: int, data: bytes) -> Array:
    """The colour indices of one frame: a file of it alone whose palette is gray, read as gray levels."""
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, 0, 0) + _GRAYS
    image = struct.pack("<BHHHHB", _IMAGE, 0, 0, width, height, flags & 0x40)
    return np.asarray(opened(head + image + data + bytes([_END]), "GIF").convert("L"))


def _frames(contents: bytes) -> Iterator[_Frame]:
    shared, position = _palette(contents, 13, contents[10])
    transparent: int | None = None
    while contents[position] != _END:
        kind = contents[position]
        if kind == _EXTENSION:
            if contents[position + 1] == _CONTROL:
                transparent = contents[position + 6] if contents[position + 3] & 1 else None
            position = _behind_blocks(contents, position + 2)
        elif kind == _IMAGE:
            x, y, width, height, flags = struct.unpack_from("<HHHHB", contents, position + 1)
            own, start = _palette(contents, position + 10, flags)
            position = _behind_blocks(contents, start + 1)
            colours = np.frombuffer(own or shared, np.uint8).reshape(-1, 3)
            yield _Frame(x, y, colours, _indices(width, height, flags, contents[start:position]), transparent)
            transparent = None
        else:
            raise ValueError(f"a block of type {kind}")


def _painted(canvas: Array, frame: _Frame) -> Array:
    """The canvas with the frame on it; what lies outside is cut."""
    result = canvas.copy()
    part = result[frame.y : frame.y + frame.indices.shape[0], frame.x : frame.x + frame.indices.shape[1]]
    indices = frame.indices[: part.shape[0], : part.shape[1]]
    shown = indices < len(frame.colours)
    if frame.transparent is not None:
        shown = shown & (indices != frame.transparent)
    part[shown] = frame.colours[indices[shown]]
    return result


def read_gif(contents: bytes, all_frames: bool = True) -> Array:
    """[frames, height, width, 3] of uint8; of a file that ends too early those frames that are whole."""
    if len(contents) < 13 or len(contents) < _palette(contents, 13, contents[10])[1]:
        raise _bad(contents, "failed to open gif file: No screen descriptor detected")
    width, height = struct.unpack_from("<HH", contents, 6)
    canvas, canvases = np.zeros((height, width, 3), np.uint8), []
    try:
        for frame in _frames(contents):
            canvas = _painted(canvas, frame)
            canvases.append(canvas)
            if not all_frames:
                break
    except (IndexError, struct.error, OSError, SyntaxError, ValueError) as error:
        if not canvases:
            raise _bad(contents, f"failed to slurp gif file: {error}") from None
    if not canvases:
        raise _bad(contents, "gif file does not contain any image")
    return np.stack(canvases)


def _bad(contents: bytes, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Invalid GIF data (size {len(contents)}), {reason}")
