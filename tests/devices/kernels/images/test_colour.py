"""Colours survive the way to HSV and back, and each adjustment changes what its name says."""

from __future__ import annotations

import colorsys
import itertools
import zlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

LEVEL = st.integers(0, 1 << 20).map(lambda level: level / (1 << 20))  # no subnormal numbers, which count as zero
IMAGES = hnp.arrays(np.float32, (2, 2, 3), elements=LEVEL)


@given(IMAGES)
def test_hsv_is_that_of_the_standard_library_and_leads_back(image: Array) -> None:
    """Python's colorsys has the same hexcone model."""
    hsv = check_shapes("RGBToHSV", image)
    expected = [colorsys.rgb_to_hsv(*map(float, pixel)) for pixel in image.reshape(-1, 3)]
    turns = np.abs(hsv.reshape(-1, 3)[:, 0] - np.array(expected)[:, 0])
    assert np.minimum(turns, 1 - turns).max() < 1e-4
    np.testing.assert_allclose(hsv.reshape(-1, 3)[:, 1:], np.array(expected)[:, 1:], atol=1e-5)
    np.testing.assert_allclose(check_shapes("HSVToRGB", hsv), image, atol=1e-5)


@given(IMAGES, st.floats(0, 3, width=32))
def test_contrast_scales_the_distance_from_the_mean(image: Array, factor: float) -> None:
    """The mean of each channel stays."""
    got = check_shapes("AdjustContrastv2", image, np.float32(factor))
    mean = image.mean((0, 1))
    np.testing.assert_allclose(got - mean, (image - mean) * factor, atol=1e-5)


@given(IMAGES)
def test_a_whole_turn_of_the_hue_changes_nothing(image: Array) -> None:
    """And without saturation only the value is left."""
    np.testing.assert_allclose(check_shapes("AdjustHue", image, np.float32(1)), image, atol=1e-4)
    grey = check_shapes("AdjustSaturation", image, np.float32(0))
    np.testing.assert_allclose(grey, np.repeat(image.max(-1, keepdims=True), 3, -1), atol=1e-5)


@pytest.mark.parametrize(
    ("op", "images", "factor", "message"),
    [
        ("RGBToHSV", (2, 4), (), "input must have 3 channels but input only has 4 channels."),
        ("HSVToRGB", (), (), "input must be at least 1D[]"),
        ("AdjustHue", (2, 3), (0.5,), "input must be at least 3-D, got shape[2,3]"),
        ("AdjustHue", (1, 2, 3), ([0.5],), "delta must be scalar: [1]"),
        ("AdjustSaturation", (0, 2, 4), (0.5,), "input must have 3 channels but instead has 4 channels."),
        ("AdjustContrast", (3,), (0.5, 0, 1), "input must be at least 3-D, got shape[3]"),
        ("AdjustContrast", (1, 2, 3), ([0.5], 0, 1), "contrast_factor must be scalar: [1]"),
        ("AdjustContrast", (1, 2, 3), (0.5, [0], 1), "min_value must be scalar: [1]"),
        ("AdjustContrast", (1, 2, 3), (0.5, 0, [1]), "max_value must be scalar: [1]"),
        ("AdjustContrastv2", (3,), (0.5,), "input must be at least 3-D, got shape[3]"),
    ],
)
def test_other_shapes_are_refused(op: str, images: tuple[int, ...], factor: tuple[Any, ...], message: str) -> None:
    """A colour has three channels, an image three axes, an adjustment one number."""
    with pytest.raises(InvalidArgumentError) as caught:
        run(op, np.ones(images, np.float32), *(np.array(value, np.float32) for value in factor))
    assert caught.value.message == message


def test_contrast_has_the_bits_of_tensorflow() -> None:
    """Values that TensorFlow 2.21 gives for two images of 15 pixels: means are sums of halves times a reciprocal."""
    images = (np.random.default_rng(0).integers(0, 256, (2, 3, 5, 3)) / 256).astype(np.float32)
    got = run("AdjustContrastv2", images, np.float32(0.7))
    assert got[:, 0, 0].view(np.uint32).tolist() == [
        [1060957061, 1058426061, 1056031376],
        [1059301622, 1057640940, 1059150889],
    ]


# Checksums of what TensorFlow 2.21 gives for all pixels of three of LEVELS: greys, saturated ones, and some outside of
# [0, 1] among them.
LEVELS = (0, -0.0, 1, 0.5, 1 / 3, 0.1, 0.7, -0.5, 2)
CHECKSUMS = [
    ("RGBToHSV", np.float32, (), 676266965),
    ("RGBToHSV", np.float64, (), 2913702686),
    ("RGBToHSV", np.float16, (), 21576370),
    ("RGBToHSV", ml_dtypes.bfloat16, (), 3344705599),
    ("HSVToRGB", np.float32, (), 1063172958),
    ("HSVToRGB", np.float64, (), 2770699109),
    ("HSVToRGB", np.float16, (), 1011721867),
    ("HSVToRGB", ml_dtypes.bfloat16, (), 2663276073),
    ("AdjustHue", np.float32, (0,), 535030670),
    ("AdjustHue", np.float32, (0.3,), 3732981031),
    ("AdjustHue", np.float32, (-0.25,), 3551087113),
    ("AdjustHue", np.float32, (2.75,), 367397400),
    ("AdjustSaturation", np.float32, (0,), 495984037),
    ("AdjustSaturation", np.float32, (0.3,), 2405028807),
    ("AdjustSaturation", np.float32, (1,), 402102363),
    ("AdjustSaturation", np.float32, (1.5,), 4288706743),
    ("AdjustSaturation", np.float32, (1e6,), 1614598717),
    ("AdjustSaturation", np.float32, (-1,), 495984037),
    ("AdjustContrast", np.float32, (0, 0, 1), 1066452802),
    ("AdjustContrast", np.float32, (1.5, -9, 9), 2985196906),
    ("AdjustContrast", np.float64, (-1, 0.1, 0.9), 1240943949),
    ("AdjustContrast", np.float32, (0.3, 1, 0), 1481092338),
    ("AdjustContrast", np.float32, (1.5, np.nan, 1), 5709970),
    ("AdjustContrast", np.float32, (1.5, 0, np.nan), 1993631135),
    ("AdjustContrastv2", np.float32, (0,), 3474721065),
    ("AdjustContrastv2", np.float32, (0.3,), 2618691333),
    ("AdjustContrastv2", np.float32, (1.5,), 1291121500),
    ("AdjustContrastv2", np.float32, (-1,), 3886482069),
]


@pytest.mark.parametrize(("op", "dtype", "factor", "checksum"), CHECKSUMS)
def test_colours_have_the_bits_of_tensorflow(op: str, dtype: Any, factor: tuple[float, ...], checksum: int) -> None:
    """For greys, saturated pixels, zero, one, and values outside of [0, 1]."""
    images = np.array(list(itertools.product(LEVELS, repeat=3))).astype(dtype)[:, None]
    got = run(op, images, *(np.float32(value) for value in factor))
    assert zlib.crc32(np.ascontiguousarray(got).tobytes()) == checksum


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32])
def test_contrast_of_whole_numbers_is_that_of_floats(dtype: Any) -> None:
    """A checksum of TensorFlow 2.21, for two images of 63 pixels, whose means are sums by columns."""
    images = np.random.default_rng(1).integers(0, 120, (2, 9, 7, 3)).astype(dtype)
    got = check_shapes("AdjustContrast", images, *(np.float32(value) for value in (1.3, 3, 90)))
    assert (got.dtype, zlib.crc32(got.tobytes())) == (np.float32, 655706115)


def test_contrast_of_one_channel_has_the_bits_of_tensorflow() -> None:
    """The order is that of many channels: numpy would sum up one by halves."""
    images = np.random.default_rng(1).random((2, 9, 7, 1), dtype=np.float32)
    got = run("AdjustContrast", images, *(np.float32(value) for value in (1.3, -9, 9)))
    assert zlib.crc32(got.tobytes()) == 1069954261
    assert run("AdjustContrast", images[:0], *np.zeros(3, np.float32)).shape == (0, 9, 7, 1)


@given(IMAGES, st.floats(0, 1e6, width=32))
def test_no_saturation_leads_below_zero(image: Array, factor: float) -> None:
    """A capped one is zero in the smallest channel: a logarithm of it is no NaN."""
    assert run("AdjustSaturation", image, np.float32(factor)).min() >= 0


def test_pixels_beyond_the_first_block_are_computed() -> None:
    """Large images are computed block by block."""
    image = np.random.default_rng(0).random((100, 123, 3), dtype=np.float32)
    got = run("RGBToHSV", image)
    np.testing.assert_array_equal(got[99], run("RGBToHSV", image[99:])[0])
