"""Projective transforms move pixels where the eight numbers say, and fill what comes from outside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run

OP = "ImageProjectiveTransformV3"
IDENTITY = [1, 0, 0, 0, 1, 0, 0, 0]


def shift(rows: int, columns: int) -> np.ndarray:
    return np.array([[1, 0, columns, 0, 1, rows, 0, 0]], np.float32)


@given(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from(["NEAREST", "BILINEAR"]), st.integers(0, 9))
def test_a_whole_shift_moves_pixels_and_fills_the_rest(rows: int, columns: int, interpolation: str, seed: int) -> None:
    """Either interpolation reads whole places exactly."""
    image = np.random.default_rng(seed).random((2, 4, 5, 1)).astype(np.float32)
    got = check_shapes(
        OP, image, shift(rows, columns), np.array([4, 5], np.int32), np.float32(9), interpolation=interpolation
    )
    expected = np.full_like(image, 9)
    for y in range(4):
        for x in range(5):
            if 0 <= y + rows < 4 and 0 <= x + columns < 5:
                expected[:, y, x] = image[:, y + rows, x + columns]
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("NEAREST", "aaabcdeee"), ("REFLECT", "baabcdeed"), ("WRAP", "deabcdeab"), ("CONSTANT", "..abcde..")],
)
def test_fill_modes_continue_the_image(mode: str, expected: str) -> None:
    """As the op documentation draws them."""
    letters = np.array([ord(letter) for letter in "abcde"], np.float32).reshape(1, 1, 5, 1)
    got = run(
        OP,
        letters,
        shift(0, -2),
        np.array([1, 9], np.int32),
        np.float32(ord(".")),
        interpolation="NEAREST",
        fill_mode=mode,
    )
    assert "".join(chr(int(code)) for code in got.ravel()) == expected


def test_transforms_that_do_not_fit_are_refused() -> None:
    """Eight numbers, once or once per image, and a mode that exists."""
    image, size, fill = np.ones((2, 2, 2, 1), np.float32), np.array([2, 2], np.int32), np.float32(0)
    with pytest.raises(InvalidArgumentError, match="num_images x 8 or 1 x 8"):
        run(OP, image, np.ones((3, 8), np.float32), size, fill, interpolation="NEAREST")
    with pytest.raises(InvalidArgumentError, match="Invalid fill_mode MIRROR"):
        run(OP, image, np.array([IDENTITY], np.float32), size, fill, interpolation="NEAREST", fill_mode="MIRROR")
