"""Kernels that decode image files. The format is told by the first bytes; most ops read more formats than they name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .bmp_files import read_bmp
from .gif_files import read_gif
from .jpeg_files import JpegOptions, failed, jpeg_shape, read_jpeg
from .png_files import SIGNATURE, read_png

_FORMATS = {b"\xff\xd8\xff": "JPEG", SIGNATURE: "PNG", b"GIF8": "GIF", b"BM": "BMP"}
_UNREAD = {b"RIFF": "WebP", b"\xff\x0a": "JPEG XL", b"\x00\x00\x00\x0cJXL ": "JPEG XL"}
_METHODS = {b"": False, b"INTEGER_FAST": False, b"INTEGER_ACCURATE": True}


def _format(contents: bytes) -> str:
    require(bool(contents), "Input is empty.")
    for start, name in _FORMATS.items():
        if contents.startswith(start):
            return name
    for start, name in _UNREAD.items():
        if contents.startswith(start):
            raise UnimplementedError(f"{name} files are not decoded here; use JPEG, PNG, GIF or BMP")
    raise InvalidArgumentError("Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required.")


def _scalar(contents: Array) -> bytes:
    shape = np.shape(contents)
    require(not shape, f"`contents` must be scalar but got shape{shape_text(shape)}")
    value: bytes = np.asarray(contents).item()
    return value


def _channels(node: Construction) -> int:
    channels = int(node.attrs.get("channels", 0))
    require(channels in (0, 1, 3, 4), f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    return channels


def _jpeg_options(node: Construction) -> JpegOptions:
    attrs = node.attrs
    ratio, method = attrs.get("ratio", 1), attrs.get("dct_method", b"")
    require(ratio in (1, 2, 4, 8), f"ratio must be 1, 2, 4, or 8, got {ratio}")
    require(method in _METHODS, "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}")
    smooth, recover = attrs.get("fancy_upscaling", True), attrs.get("try_recover_truncated", False)
    return JpegOptions(ratio, smooth, _METHODS[method], recover)


def _in_type(pixels: Array, dtype: np.dtype[Any]) -> Array:
    """Samples of 8 bits in another type: the upper half of 16 bits, or parts of one."""
    if dtype == np.uint16:
        return pixels.astype(np.uint16) << np.uint16(8)
    return pixels.astype(np.float32) * np.float32(1 / 255) if dtype == np.float32 else pixels


def _png(contents: bytes, channels: int, dtype: np.dtype[Any]) -> Array:
    if dtype != np.float32:
        return read_png(contents, channels, dtype)
    return read_png(contents, channels, np.dtype(np.uint16)).astype(np.float32) * np.float32(1 / 65535)


def _gif(contents: bytes, channels: int, all_frames: bool) -> Array:
    require(channels in (0, 3), f"channels must be 0 or 3 for GIF, got {channels}")
    return read_gif(contents, all_frames)


def _jpeg(contents: bytes, channels: int, options: JpegOptions) -> Array:
    require(channels != 4, "JPEG does not support 4 channels")
    return read_jpeg(contents, channels, options)


def _reader(node: Construction, channels: int, all_frames: bool) -> Callable[[bytes, str], Array]:
    """What reads a file of a known format: [height, width, channels], and an axis for the frames of GIF files."""
    options, dtype = _jpeg_options(node), numpy_dtype(node.output_types[0])

    def read(contents: bytes, kind: str) -> Array:
        if kind == "PNG":
            return _png(contents, channels, dtype)
        if kind == "JPEG":
            return _in_type(_jpeg(contents, channels, options), dtype)
        if kind == "GIF":
            return _in_type(_gif(contents, channels, all_frames), dtype)
        return _in_type(read_bmp(contents, channels), dtype)

    return read


def _refuse_bmp(kind: str, op: str) -> None:
    if kind == "BMP":
        raise InvalidArgumentError(
            f"Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. Op used: {op}"
        )


@kernel("DecodePng", "DecodeJpeg")
def decode_one(node: Construction) -> Kernel:
    """One image, from a PNG, JPEG or GIF file."""
    read = _reader(node, _channels(node), all_frames=True)

    def run(contents: Array) -> Array:
        data = _scalar(contents)
        kind = _format(data)
        _refuse_bmp(kind, node.op)
        image = read(data, kind)
        if kind != "GIF":
            return image
        if len(image) != 1:
            raise InvalidArgumentError(
                f"Got {len(image)} frames, but animated gifs can only be decoded by tf.io.decode_gif or "
                "tf.io.decode_image"
            )
        first: Array = image[0]
        return first

    return run


@kernel("DecodeGif")
def decode_gif(node: Construction) -> Kernel:
    """All frames of a GIF file; PNG and JPEG files are animations of one frame."""
    read = _reader(node, 3, all_frames=True)

    def run(contents: Array) -> Array:
        data = _scalar(contents)
        kind = _format(data)
        _refuse_bmp(kind, node.op)
        image = read(data, kind)
        return image if kind == "GIF" else image[None]

    return run


@kernel("DecodeBmp")
def decode_bmp(node: Construction) -> Kernel:
    """One image, from a BMP file."""
    channels = _channels(node)

    def run(contents: Array) -> Array:
        data = _scalar(contents)
        kind = _format(data)
        if kind != "BMP":
            raise InvalidArgumentError(
                f"Trying to decode {kind} format using DecodeBmp op. Use `decode_{kind.lower()}` or `decode_image` "
                "instead."
            )
        return read_bmp(data, channels)

    return run


@kernel("DecodeImage")
def decode_image(node: Construction) -> Kernel:
    """One image, from a file of any format; of a GIF file all frames, or the first one."""
    expand = node.attrs["expand_animations"]
    read = _reader(node, _channels(node), all_frames=expand)

    def run(contents: Array) -> Array:
        data = _scalar(contents)
        kind = _format(data)
        image = read(data, kind)
        return image[0] if kind == "GIF" and not expand else image

    return run


@kernel("DecodeAndCropJpeg")
def decode_and_crop_jpeg(node: Construction) -> Kernel:
    """A part (y, x, height, width) of one image."""
    channels, options = _channels(node), _jpeg_options(node)

    def run(contents: Array, window: Array) -> Array:
        data = _scalar(contents)
        kind = _format(data)
        require(kind == "JPEG", f"DecodeAndCropJpeg operation can run on JPEG only, but detected {kind}.")
        require(window.shape == (4,), f"crop_size must have four elements {shape_text(window.shape)}")
        y, x, height, width = window.tolist()
        image = _jpeg(data, channels, replace(options, columns=(x, width)))
        if y < 0 or height <= 0 or y + height > image.shape[0]:
            raise failed()
        return image[y : y + height]

    return run


@kernel("ExtractJpegShape")
def extract_jpeg_shape(node: Construction) -> Kernel:
    """Height, width and channels; the image itself is not decoded."""
    dtype = numpy_dtype(node.output_types[0])

    def run(contents: Array) -> Array:
        shape = np.shape(contents)
        require(not shape, f"contents must be scalar, got shape {shape_text(shape)}")
        return np.array(jpeg_shape(np.asarray(contents).item()), dtype)

    return run
