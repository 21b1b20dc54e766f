"""The one way to Pillow, which is not needed unless a step reads or writes an image file."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

from ....errors import UnimplementedError


def pillow(module: str) -> Any:  # a module without types here
    """A module of Pillow; UnimplementedError if the extra `images` is not installed."""
    try:
        return import_module(f"PIL.{module}")
    except ImportError:
        raise UnimplementedError(
            "image files are read and written by Pillow, which is not installed: pip install 'partita[images]'"
        ) from None


def opened(contents: bytes, kind: str) -> Any:  # an image of Pillow
    """The image in a file of that kind, its pixels not read yet; OSError or SyntaxError if it is damaged."""
    return pillow("Image").open(io.BytesIO(contents), formats=[kind])
