"""Spectra equal their definition, and coefficients those of TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, shapes


@given(st.integers(2, 40), st.integers(1, 9), st.integers(0, 60), st.integers(1, 2), st.booleans())
def test_a_spectrogram_is_a_transform_of_weighted_windows(
    window: int, stride: int, samples: int, channels: int, squared: bool
) -> None:
    """A sum over the samples of each window, for each frequency."""
    audio = np.random.default_rng(window).normal(size=(samples, channels)).astype(np.float32)
    found = check_shapes("AudioSpectrogram", audio, window_size=window, stride=stride, magnitude_squared=squared)
    length = 2 ** int(np.ceil(np.log2(window)))
    n = np.arange(window)
    waves = np.exp(-2j * np.pi / length * np.outer(n, np.arange(length // 2 + 1)))
    weights = np.sin(np.pi * n / window) ** 2
    starts = range(0, samples - window + 1, stride)
    for channel in range(channels):
        assert found[channel].shape == (len(starts), length // 2 + 1)
        for row, start in zip(found[channel], starts, strict=True):
            sums = np.abs((audio[start : start + window, channel] * weights) @ waves)
            np.testing.assert_allclose(row, sums**2 if squared else sums, rtol=1e-6, atol=1e-9)


def test_a_spectrogram_of_tensorflow() -> None:
    """TensorFlow 2.21 gives these; a window of five is padded to eight."""
    audio = np.arange(12, dtype=np.float32).reshape(12, 1)
    found = check_shapes("AudioSpectrogram", audio, window_size=5, stride=3, magnitude_squared=True)
    expected = [
        [39.0625, 25.119026, 5.7899575, 0.21088912, 0.017415028],
        [189.0625, 115.04931, 20.789957, 0.28060323, 0.017415028],
        [451.5625, 272.42731, 47.03996, 0.40260294, 0.017415028],
    ]
    np.testing.assert_allclose(found, [expected], rtol=3e-7)


def test_coefficients_of_silence() -> None:
    """Every band has the least energy, 1e-12, so that only the first coefficient is not zero."""
    found = check_shapes("Mfcc", np.zeros((1, 2, 129), np.float32), np.int32(16000))
    expected = np.zeros((1, 2, 13))
    expected[..., 0] = np.log(1e-12) * np.sqrt(2 * 40)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-10)


def test_coefficients_of_tensorflow() -> None:
    """TensorFlow 2.21 gives these."""
    spectrum = (np.arange(65, dtype=np.float32) % 7 + 1).reshape(1, 1, 65)
    attrs = {"filterbank_channel_count": 8, "dct_coefficient_count": 5, "lower_frequency_limit": 100.0}
    found = check_shapes("Mfcc", spectrum, np.int32(8000), upper_frequency_limit=3900.0, **attrs)
    np.testing.assert_allclose(found, [[[9.788868, -1.2353004, 0.01946709, -0.10656855, 0.04101229]]], rtol=1e-6)


def test_a_spectrum_that_ends_too_early_gives_zeros() -> None:
    """The bands reach up to 4000 Hz by default."""
    found = check_shapes("Mfcc", np.ones((1, 1, 65), np.float32), np.int32(4000))
    np.testing.assert_array_equal(found, np.zeros((1, 1, 13)))


def test_wrong_arguments_are_refused() -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match="Spectrogram initialization failed for window size 1 and stride 2"):
        check_shapes("AudioSpectrogram", np.zeros((9, 1), np.float32), window_size=1, stride=2)
    with pytest.raises(InvalidArgumentError, match=r"input must be 2-dimensional\[9\]"):
        check_shapes("AudioSpectrogram", np.zeros(9, np.float32), window_size=2, stride=2)
    with pytest.raises(InvalidArgumentError, match="window size must be > 1, got 1"):
        shapes("AudioSpectrogram", (None, 1), window_size=1, stride=2)
    with pytest.raises(InvalidArgumentError, match="stride must be strictly positive, got 0"):
        shapes("AudioSpectrogram", (None, 1), window_size=2, stride=0)
    failed = "Mfcc initialization failed for channel count 1, sample rate 16000 and filterbank_channel_count 40"
    with pytest.raises(InvalidArgumentError, match=failed):
        check_shapes("Mfcc", np.zeros((1, 1, 1), np.float32), np.int32(16000))
    with pytest.raises(InvalidArgumentError, match="Mfcc initialization failed"):
        check_shapes("Mfcc", np.zeros((1, 1, 9), np.float32), np.int32(16000), dct_coefficient_count=41)
