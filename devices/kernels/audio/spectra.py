"""Kernels of AudioSpectrogram and Mfcc: spectra over time, and what speech recognition makes of them.

Both compute in double precision and round at the end, as TensorFlow does.
"""

from __future__ import annotations

import math

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..linalg.products import batch_product
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel

_BLOCK = 1 << 18
"""samples, some of them several times, whose spectra are computed at a time"""
_LEAST = 1e-12
"""what a band has at least, so that its logarithm exists"""


@kernel("AudioSpectrogram")
def audio_spectrogram(node: Construction) -> Kernel:
    """Magnitudes (or their squares) of the spectra of overlapping windows: [channels, windows, frequencies].

    A window is weighted by a periodic Hann function and padded with zeros to a power of two.
    """
    window, stride, squared = (node.attrs[key] for key in ("window_size", "stride", "magnitude_squared"))
    failed = f"Spectrogram initialization failed for window size {window} and stride {stride}"
    require(window > 1 and stride > 0, failed)
    weights = 0.5 - 0.5 * np.cos(2 * math.pi / window * np.arange(window))
    length = 1 << (window - 1).bit_length()

    def run(samples: Array) -> Array:
        require(samples.ndim == 2, f"input must be 2-dimensional{shape_text(samples.shape)}")
        channels = np.ascontiguousarray(samples.T)
        if channels.shape[1] < window or not len(channels):
            windows = max(0, 1 + (channels.shape[1] - window) // stride)
            return np.zeros((len(channels), windows, length // 2 + 1), np.float32)
        pieces = np.lib.stride_tricks.sliding_window_view(channels, window, axis=1)[:, ::stride]
        result = np.empty(output_shape((*pieces.shape[:2], length // 2 + 1), np.dtype(np.float32)), np.float32)
        at_once = max(1, _BLOCK // length)
        for start in range(0, pieces.shape[1], at_once):
            block = slice(start, start + at_once)
            spectrum = np.fft.rfft(pieces[:, block] * weights, length)
            power = spectrum.real**2 + spectrum.imag**2
            result[:, block] = power if squared else np.sqrt(power)
        return result

    return run


def _mel(frequency: Array | float) -> Array:
    """The pitch, in mel, of a frequency in Hz (O'Shaughnessy)."""
    pitch: Array = 1127.0 * np.log1p(np.asarray(frequency, np.float64) / 700.0)
    return pitch


def mel_bands(bins: int, rate: float, bands: int, low: float, high: float) -> Array | None:
    """The weight of each bin of a spectrum in each band, [bins, bands]; None if the spectrum ends below `high` Hz.

    Bands are triangles that overlap by half and whose tops are equally far from each other in mel.
    """
    hz_per_bin = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + low / hz_per_bin), int(high / hz_per_bin)
    if last >= bins:
        return None
    bottom, top = float(_mel(low)), float(_mel(high))
    centers = bottom + (top - bottom) / (bands + 1) * np.arange(1, bands + 2)
    pitches = _mel(np.arange(bins) * hz_per_bin)
    below = np.minimum(np.searchsorted(centers, pitches, "left"), bands) - 1
    starts = np.where(below < 0, bottom, centers[np.maximum(below, 0)])
    falling = (centers[below + 1] - pitches) / (centers[below + 1] - starts)
    weights = np.zeros((bins, bands + 2))  # a column before the bands and one behind them
    rows = np.arange(first, last + 1)
    weights[rows, below[rows] + 1] = falling[rows]
    weights[rows, below[rows] + 2] = 1 - falling[rows]
    return weights[:, 1:-1]


def _cosines(bands: int, coefficients: int) -> Array:
    """The discrete cosine transform (II), scaled by sqrt(2 / bands): [bands, coefficients]."""
    angles = np.outer(np.arange(bands) + 0.5, np.arange(coefficients)) * (math.pi / bands)
    cosines: Array = math.sqrt(2.0 / bands) * np.cos(angles)
    return cosines


@kernel("Mfcc")
def mfcc(node: Construction) -> Kernel:
    """Mel-frequency cepstral coefficients of spectra of squared magnitudes: [channels, windows, coefficients]."""
    low, high = node.attrs["lower_frequency_limit"], node.attrs["upper_frequency_limit"]
    bands, coefficients = node.attrs["filterbank_channel_count"], node.attrs["dct_coefficient_count"]
    is_valid = bands >= 1 and 1 <= coefficients <= bands and 0 <= low < high
    cosines = _cosines(bands, coefficients) if is_valid else None
    filters: dict[tuple[int, int], Array | None] = {}

    def run(spectrogram: Array, sample_rate: Array) -> Array:
        require(spectrogram.ndim == 3, f"spectrogram must be 3-dimensional{shape_text(spectrogram.shape)}")
        shape = np.shape(sample_rate)
        require(not shape, f"Input sample_rate should be a scalar tensor, got {shape_text(shape)} instead.")
        bins, rate = spectrogram.shape[2], int(sample_rate)
        if cosines is None or bins < 2 or rate <= 0:
            raise InvalidArgumentError(
                f"Mfcc initialization failed for channel count {bins}, sample rate {rate} and "
                f"filterbank_channel_count {bands}"
            )
        if (bins, rate) not in filters:
            filters[bins, rate] = mel_bands(bins, rate, bands, low, high)
        weights = filters[bins, rate]
        if weights is None:
            return np.zeros((*spectrogram.shape[:2], coefficients), np.float32)
        energies = np.maximum(batch_product(np.sqrt(spectrogram.astype(np.float64)), weights), _LEAST)
        result: Array = batch_product(np.log(energies), cosines).astype(np.float32)
        return result

    return run
