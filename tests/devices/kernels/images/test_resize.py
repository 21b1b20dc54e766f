"""Resizing keeps constants, its gradients are its adjoints, and fake quantisation lands on its grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run, shapes

SIZE = st.integers(1, 7)
MODES = st.sampled_from([(False, False), (True, False), (False, True)])
RESIZES = ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"]


def attrs_of(mode: tuple[bool, bool]) -> dict[str, Any]:
    return {"align_corners": mode[0], "half_pixel_centers": mode[1]}


@pytest.mark.parametrize("op", RESIZES)
@given(SIZE, SIZE, SIZE, SIZE, MODES)
@settings(max_examples=30)
def test_constant_images_stay_constant(
    op: str, height: int, width: int, new_height: int, new_width: int, mode: tuple[bool, bool]
) -> None:
    """Weights sum to one, up and down, in every way of laying the grids over each other."""
    image = np.full((2, height, width, 3), 2.5, np.float32)
    got = check_shapes(op, image, np.array([new_height, new_width], np.int32), **attrs_of(mode))
    np.testing.assert_allclose(got, np.full((2, new_height, new_width, 3), 2.5), rtol=1e-5)


@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"])
@given(SIZE, SIZE, st.integers(0, 99))
@settings(max_examples=15)
def test_resizing_to_the_same_size_changes_nothing(op: str, height: int, width: int, seed: int) -> None:
    """Each output cell lies on one input cell."""
    image = np.random.default_rng(seed).random((1, height, width, 2)).astype(np.float32)
    np.testing.assert_allclose(check_shapes(op, image, np.array([height, width], np.int32)), image, rtol=1e-5)


@pytest.mark.parametrize("op", RESIZES)
@given(SIZE, SIZE, SIZE, SIZE, MODES, st.integers(0, 99))
@settings(max_examples=30)
def test_gradients_are_adjoint(
    op: str, height: int, width: int, new_height: int, new_width: int, mode: tuple[bool, bool], seed: int
) -> None:
    """<resize(x), y> == <x, gradient(y)>."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((1, height, width, 2)).astype(np.float32)
    resized = run(op, x, np.array([new_height, new_width], np.int32), **attrs_of(mode))
    y = rng.standard_normal(resized.shape).astype(np.float32)
    second = np.array([height, width], np.int32) if op == "ResizeNearestNeighbor" else x
    back = check_shapes(f"{op}Grad", y, second, **attrs_of(mode))
    assert back.shape == x.shape
    np.testing.assert_allclose(np.vdot(back, x), np.vdot(y, resized), rtol=1e-3, atol=1e-3)


@given(SIZE, st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=15)
def test_area_is_the_mean_of_whole_blocks(size: int, factor: int, seed: int) -> None:
    """Where output cells cover whole input cells."""
    image = np.random.default_rng(seed).random((1, size * factor, factor, 1)).astype(np.float32)
    got = check_shapes("ResizeArea", image, np.array([size, 1], np.int32))
    np.testing.assert_allclose(
        got, image.reshape(1, size, factor, factor, 1).mean((2, 3), keepdims=False)[:, :, None], rtol=1e-5
    )


@pytest.mark.parametrize(
    ("image", "size", "attrs", "message"),
    [
        ((1, 2, 2, 3), [0, 3], {}, "output dimensions must be positive"),
        ((1, 2, 2), [1, 3], {}, "input must be 4-dimensional[1,2,2]"),
        ((1, 2, 2, 3), [1, 3, 1], {}, "shape_t must have two elements[3]"),
        ((1, 0, 2, 3), [1, 3], {}, "input image must be of non-zero size"),
        (
            (1, 2, 2, 3),
            [1, 3],
            {"align_corners": True, "half_pixel_centers": True},
            "If half_pixel_centers is True, align_corners must be False.",
        ),
    ],
)
def test_sizes_that_make_no_sense_are_named(
    image: tuple[int, ...], size: list[int], attrs: dict[str, Any], message: str
) -> None:
    """The message is TensorFlow's."""
    with pytest.raises(InvalidArgumentError) as caught:
        run("ResizeBilinear", np.ones(image, np.float32), np.array(size, np.int32), **attrs)
    assert caught.value.message == message


def test_unknown_new_sizes_stay_unknown() -> None:
    """Batch and channels are the image's."""
    assert shapes("ResizeBilinear", (1, 2, 3, None), (2,)) == [(1, None, None, None)]


RANGE = st.tuples(st.floats(-9, 0, width=32), st.floats(0.5, 9, width=32))


@given(RANGE, st.integers(2, 8), st.booleans(), st.integers(0, 99))
def test_fake_quant_lands_on_a_grid_that_holds_zero(
    ends: tuple[float, float], bits: int, narrow: bool, seed: int
) -> None:
    """Whole multiples of one step, at most 2 ** bits of them, and no further from the input than half a step inside."""
    low, high = ends
    x = np.random.default_rng(seed).uniform(low, high, 50).astype(np.float32)
    got = check_shapes("FakeQuantWithMinMaxArgs", x, min=low, max=high, num_bits=bits, narrow_range=narrow)
    step = (high - low) / (2**bits - 1 - int(narrow))
    multiples = got / step
    np.testing.assert_allclose(multiples, np.round(multiples), atol=1e-2)
    assert np.abs(got - x).max() <= step * 1.01
    again = run("FakeQuantWithMinMaxVars", x, np.float32(low), np.float32(high), num_bits=bits, narrow_range=narrow)
    np.testing.assert_array_equal(again, got)


def test_fake_quant_gradients_stop_outside_the_range() -> None:
    """The gradient of a clamped element goes to the end it was clamped to."""
    x, g = np.array([-9, 1, 9, 9], np.float32), np.array([1, 2, 3, 4], np.float32)
    passed, low, high = check_shapes("FakeQuantWithMinMaxVarsGradient", g, x, np.float32(-6), np.float32(6))
    np.testing.assert_array_equal(passed, [0, 2, 0, 0])
    assert (low, high) == (1, 7)


def test_fake_quant_refuses_empty_ranges() -> None:
    """The error is raised when the kernel is made."""
    with pytest.raises(InvalidArgumentError, match="min has to be smaller than max, was: 1 >= 0"):
        run("FakeQuantWithMinMaxArgs", np.ones(2, np.float32), min=1.0, max=0.0)
