"""ScaleAndTranslate: properties of all filter kernels, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

KERNELS = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
INTERPOLATING = ("lanczos1", "lanczos3", "lanczos5", "box", "triangle", "keyscubic")
ZERO, ONE = np.zeros(2, np.float32), np.ones(2, np.float32)


def image(height: int, width: int, seed: int = 0) -> Array:
    """Random images of two channels."""
    return np.random.default_rng(seed).uniform(size=(2, height, width, 2)).astype(np.float32)


@given(st.sampled_from(KERNELS), st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_a_flat_image_stays_flat(name: str, height: int, width: int, antialias: bool) -> None:
    """The weights of a cell sum to one."""
    scale = np.array([height / 4, width / 5], np.float32)
    size = np.array([height, width], np.int32)
    flat = np.full((1, 4, 5, 1), 3, np.uint8)
    actual = check_shapes("ScaleAndTranslate", flat, size, scale, ZERO, kernel_type=name, antialias=antialias)
    np.testing.assert_allclose(actual, 3, rtol=1e-5)


@pytest.mark.parametrize("name", INTERPOLATING)
def test_an_unchanged_place_keeps_its_value(name: str) -> None:
    """Kernels that are zero at the other cells' centres give the image back."""
    x = image(4, 5)
    actual = run("ScaleAndTranslate", x, np.array([4, 5], np.int32), ONE, ZERO, kernel_type=name)
    np.testing.assert_allclose(actual, x, atol=1e-6)


def test_positions_are_in_single_precision() -> None:
    """A Gaussian ends in a step at 1.5 cells: 8.5 * 12 / 17 must be 6 for the edge cells to be left out on both sides.

    TensorFlow 2.21 gives 30.5 for column 8.
    """
    squares = (np.arange(12, dtype=np.float32) ** 2).reshape(1, 1, 12, 1)
    size, scale = np.array([1, 17], np.int32), np.array([1, 17 / 12], np.float32)
    row = run("ScaleAndTranslate", squares, size, scale, ZERO, kernel_type="gaussian", antialias=False)[0, 0, :, 0]
    np.testing.assert_allclose(row[7:10], [23.44861, 30.5, 38.4532], rtol=1e-6)


def test_a_translation_by_whole_cells_moves_the_image() -> None:
    """What lies outside of the image is zero."""
    x, size = image(4, 5), np.array([4, 5], np.int32)
    moved = run("ScaleAndTranslate", x, size, ONE, np.array([1, -2], np.float32), kernel_type="triangle")
    np.testing.assert_allclose(moved[:, 1:, :3], x[:, :3, 2:], atol=1e-6)
    assert not moved[:, 0].any()
    assert not moved[:, :, 3:].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": np.zeros((1, 1, 1), np.float32)}, r"input must be 4-dimensional\[1,1,1\]"),
        ({"size": np.array([0, 1], np.int32)}, "output dimensions must be positive"),
        ({"size": np.array([1], np.int32)}, r"output_shape_t must have two elements\[1\]"),
        ({"scale": np.array([0, 1], np.float32)}, "Scale must be greater than zero"),
        ({"kernel_type": "foo"}, "Unrecognized kernel type: foo"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    """The error has TensorFlow's words."""
    given_ = {"images": image(2, 2), "size": np.array([2, 2], np.int32), "scale": ONE, "kernel_type": "box"} | change
    with pytest.raises(InvalidArgumentError, match=message):
        run(
            "ScaleAndTranslate",
            given_["images"],
            given_["size"],
            given_["scale"],
            ZERO,
            kernel_type=given_["kernel_type"],
        )
