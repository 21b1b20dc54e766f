"""Kernels that encode images as PNG and JPEG files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ....errors import InternalError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from ..strings.each_string import strings
from .pillow import pillow
from .png_writing import write_png

_CHANNELS = {b"grayscale": 1, b"rgb": 3}
_UNIT_BYTE, _PER_CM = 13, 2  # of the JFIF header
_XMP = b"http://ns.adobe.com/xap/1.0/\0"


@kernel("EncodePng")
def encode_png(node: Construction) -> Kernel:
    """A file for each image in the last three axes."""
    compression = node.attrs["compression"]
    require(-1 <= compression <= 9, f"compression should be in [-1,9], got {compression}")

    def run(images: Array) -> Array:
        shape = images.shape
        require(images.ndim >= 3, f"images must be at least rank 3{shape_text(shape)}")
        require(1 <= shape[-1] <= 4, f"image must have 1, 2, 3, or 4 channels, got {shape[-1]}")
        batch = shape[:-3]
        if not prod(shape[-3:]) and prod(batch):
            failed = ", ".join(map(str, range(prod(batch))))
            raise InternalError(f"PNG encoding failed at the following flattened batch indices: {failed}")
        each = images.reshape(prod(batch), *shape[-3:])
        return strings([write_png(image, compression) for image in each], batch)

    return run


def _check_image(image: Array) -> None:
    require(image.ndim == 3, f"image must be 3-dimensional{shape_text(image.shape)}")
    require(image.shape[2] in (1, 3), f"image must have 1 or 3 channels, got {shape_text(image.shape)}")
    if not image.size:
        raise InternalError("JPEG encoding failed")


def _check_quality(quality: int) -> None:
    require(0 <= quality <= 100, f"quality must be in [0,100], got {quality}")


def _write_jpeg(image: Array, quality: int, attrs: Mapping[str, Any]) -> Array:
    """A JPEG file as a scalar; `attrs` are those of EncodeJpeg, or none for its defaults."""
    metadata = attrs.get("xmp_metadata", b"")
    extra = _marker(_XMP + metadata) if metadata else b""
    density = attrs.get("x_density", 300), attrs.get("y_density", 300)
    is_coloured = image.shape[2] == 3
    file = io.BytesIO()
    pillow("Image").fromarray(image if is_coloured else image[..., 0]).save(
        file,
        "JPEG",
        quality=quality,
        progressive=attrs.get("progressive", False),
        optimize=attrs.get("optimize_size", False),
        subsampling=2 if is_coloured and attrs.get("chroma_downsampling", True) else 0,
        dpi=density,
        extra=extra,
    )
    contents = bytearray(file.getvalue())
    if attrs.get("density_unit") == b"cm":
        contents[_UNIT_BYTE] = _PER_CM
    return strings([bytes(contents)], ())


def _marker(body: bytes) -> bytes:
    """An application segment (APP1)."""
    return b"\xff\xe1" + (len(body) + 2).to_bytes(2, "big") + body


@kernel("EncodeJpeg")
def encode_jpeg(node: Construction) -> Kernel:
    """One file; the quality is an attr."""
    quality, wanted = node.attrs["quality"], node.attrs["format"]
    _check_quality(quality)

    def run(image: Array) -> Array:
        require(image.ndim == 3, f"image must be 3-dimensional{shape_text(image.shape)}")
        channels = _CHANNELS.get(wanted, image.shape[2])
        text = f"format {wanted.decode()} expects {channels} channels, got {shape_text(image.shape)}"
        require(image.shape[2] == channels, text)
        _check_image(image)
        return _write_jpeg(image, quality, node.attrs)

    return run


@kernel("EncodeJpegVariableQuality")
def encode_jpeg_variable_quality(node: Construction) -> Kernel:
    """One file; the quality is an input."""

    def run(image: Array, quality: Array) -> Array:
        _check_image(image)
        shape = np.shape(quality)
        require(not shape, f"quality must be scalar: {shape_text(shape)}")
        _check_quality(int(quality))
        return _write_jpeg(image, int(quality), {})

    return run
