"""Images for the tests of codecs, and running an op on the contents of a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.devices.kernels.strings.each_string import strings
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes


def picture(height: int, width: int, channels: int = 3, dtype: type[np.unsignedinteger] = np.uint8) -> Array:
    """Smooth colours with a little texture."""
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    levels = 0.5 + 0.35 * np.sin(x / (5 + c) + c) + 0.1 * np.cos(y / (3 + c)) + 0.04 * ((7 * x + 5 * y + c) % 3)
    pixels: Array = (np.clip(levels, 0, 1) * np.iinfo(dtype).max).astype(dtype)
    return pixels


def decode(op: str, contents: bytes, *inputs: Array, **attrs: Any) -> Array:
    """The image in a file."""
    image: Array = check_shapes(op, strings([contents], ()), *inputs, **attrs)
    return image


def encode(op: str, image: Array, *inputs: Array, **attrs: Any) -> bytes:
    """The file of an image."""
    return bytes(check_shapes(op, image, *inputs, **attrs).item())
