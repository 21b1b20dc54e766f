"""Shape functions of the ops on sound: samples are [samples, channels], spectra [channels, windows, frequencies]."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank
from ...dtypes import Shape


@shape_fn("DecodeWav")
def decode_wav(c: ShapeContext) -> Sequence[Shape]:
    """The file says how many samples and channels there are, unless attrs do."""
    with_rank(c.inputs[0], 0)
    sizes = []
    for what in ("samples", "channels"):
        size = c.attrs[f"desired_{what}"]
        if size < -1:
            raise InvalidArgumentError(f"{what} must be non-negative, got {size}")
        sizes.append(None if size < 0 else size)
    return (tuple(sizes), ())


@shape_fn("EncodeWav")
def encode_wav(c: ShapeContext) -> Sequence[Shape]:
    """One file."""
    with_rank(c.inputs[0], 2)
    with_rank(c.inputs[1], 0)
    return ((),)


def spectrum_size(window_size: int) -> int:
    """Frequencies of a real spectrum of a window padded to a power of two."""
    return (1 << (window_size - 1).bit_length()) // 2 + 1


@shape_fn("AudioSpectrogram")
def audio_spectrogram(c: ShapeContext) -> Sequence[Shape]:
    """A spectrum for each whole window."""
    samples, channels = with_rank(c.inputs[0], 2)
    window, stride = c.attrs["window_size"], c.attrs["stride"]
    if window <= 1:
        raise InvalidArgumentError(f"window size must be > 1, got {window}")
    if stride <= 0:
        raise InvalidArgumentError(f"stride must be strictly positive, got {stride}")
    windows = None if samples is None else max(0, 1 + (samples - window) // stride)
    return ((channels, windows, spectrum_size(window)),)


@shape_fn("Mfcc")
def mfcc(c: ShapeContext) -> Sequence[Shape]:
    """A number of coefficients for each spectrum."""
    channels, windows, _ = with_rank(c.inputs[0], 3)
    with_rank(c.inputs[1], 0)
    return ((channels, windows, c.attrs["dct_coefficient_count"]),)
