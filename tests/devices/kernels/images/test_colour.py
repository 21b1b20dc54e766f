"""Colours survive the way to HSV and back, and each adjustment changes what its name says."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

IMAGES = hnp.arrays(np.float32, (2, 2, 3), elements=st.floats(0, 1, width=32))


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


def test_other_than_three_channels_are_refused() -> None:
    """A colour has three."""
    with pytest.raises(InvalidArgumentError, match=r"3 channels on their last axis, got shape \[2,4\]"):
        run("RGBToHSV", np.ones((2, 4), np.float32))


def test_contrast_has_the_bits_of_tensorflow() -> None:
    """Values that TensorFlow 2.21 gives for two images of 15 pixels: means are sums of halves times a reciprocal."""
    images = (np.random.default_rng(0).integers(0, 256, (2, 3, 5, 3)) / 256).astype(np.float32)
    got = run("AdjustContrastv2", images, np.float32(0.7))
    assert got[:, 0, 0].view(np.uint32).tolist() == [
        [1060957061, 1058426061, 1056031376],
        [1059301622, 1057640940, 1059150889],
    ]
