"""Kernels that summarise batches of images and sounds for TensorBoard: one PNG or wave file per entry.

Floating-point images are scaled so that the greatest value is white; with negative ones zero is mid-gray:

    0 1 2 -> 0 127 255      -2 0 1 -> 1 128 191
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.files.summaries import audio_summary, image_summary
from ..audio.wav_files import encode_wav
from ..checks import require, single_of
from ..image_files.png_writing import write_png
from ..registry import Construction, Kernel, kernel

_TINY = 1e-6
"""greatest magnitudes below this are taken for zero"""


def _tags(tag: Array, kind: str, most: int, count: int) -> list[bytes]:
    """The tags of the entries; they are numbered if there might be several."""
    base: bytes = np.asarray(tag).item() + b"/" + kind.encode()
    return [base][:count] if most == 1 else [base + f"/{i}".encode() for i in range(min(most, count))]


def _visible(image: Array, bad_colour: Array) -> Array:
    """An image in 256 levels; a pixel with a value that is not finite has the bad colour."""
    depth = image.shape[2]
    good = np.isfinite(image).all(axis=2)
    values, dtype = image[good], image.dtype.type
    lowest, highest = (values.min(), values.max()) if values.size else (dtype(0), dtype(0))
    largest = max(abs(lowest), abs(highest))
    full, offset = (127.0, 128.0) if lowest < 0 else (255.0, 0.0)
    scale = dtype(0) if largest < _TINY else dtype(np.float32(full) / np.float32(largest))
    result = np.empty(image.shape, np.uint8)
    result[good] = (values * scale + dtype(offset)).astype(np.uint8)
    result[~good] = bad_colour[:depth]
    return result


@kernel("ImageSummary")
def image_summaries(node: Construction) -> Kernel:
    """The first images of [batch, height, width, 1, 3 or 4 channels]."""
    most, bad_colour = node.attrs["max_images"], np.asarray(node.attrs["bad_color"]).reshape(-1)

    def run(tag: Array, images: Array) -> Array:
        require(np.ndim(tag) == 0, "Tags must be a scalar")
        fits = images.ndim == 4 and images.shape[3] in (1, 3, 4)
        require(fits, f"Tensor must be 4-D with last dim 1, 3, or 4, not {shape_text(images.shape)}")
        sizes = ", ".join(map(str, images.shape))
        require(0 not in images.shape[1:], f"input tensor must have non-zero dims. Found: [{sizes}].")
        depth = images.shape[3]
        message = f"expected depth <= bad_color.size, got depth = {depth}, bad_color.size = {bad_colour.size}"
        require(depth <= bad_colour.size, message)
        shown = images[:most]
        pictures = [image if image.dtype == np.uint8 else _visible(image, bad_colour) for image in shown]
        files = [write_png(picture, -1) for picture in pictures]
        return np.array(image_summary(_tags(tag, "image", most, len(files)), images.shape[1:], files), object)

    return run


def _sounds(tag: Array, tensor: Array, rate: float, most: int) -> Array:
    require(np.ndim(tag) == 0, "Tag must be a scalar")
    require(0 < rate < 2**32, "sample_rate must be > 0, and a number that a sound file can hold")
    require(tensor.ndim in (2, 3), f"Tensor must be 3-D or 2-D, got: {shape_text(tensor.shape)}")
    batch = tensor if tensor.ndim == 3 else tensor[..., None]
    files: list[Any] = [encode_wav(sound, np.array(int(rate))).item() for sound in batch[:most]]
    frames, channels = batch.shape[1:]
    return np.array(audio_summary(_tags(tag, "audio", most, len(files)), rate, channels, frames, files), object)


@kernel("AudioSummary")
def audio_summaries(node: Construction) -> Kernel:
    """The first sounds of [batch, samples] or [batch, samples, channels]; the sample rate in Hz is an attr."""
    rate, most = node.attrs["sample_rate"], node.attrs["max_outputs"]
    return lambda tag, tensor: _sounds(tag, tensor, rate, most)


@kernel("AudioSummaryV2")
def audio_summaries_v2(node: Construction) -> Kernel:
    """As AudioSummary; the sample rate is an input."""
    most = node.attrs["max_outputs"]
    return lambda tag, tensor, rate: _sounds(tag, tensor, float(single_of(rate, "sample_rate")), most)
