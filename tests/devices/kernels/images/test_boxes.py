"""Crops sample their box and outlines stay inside images."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError, OutOfRangeError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run, shapes


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 99))
def test_the_whole_image_as_box_is_the_image(height: int, width: int, seed: int) -> None:
    """At its own size; reversed corners turn it upside down."""
    image = np.random.default_rng(seed).random((1, height, width, 2)).astype(np.float32)
    size, owner = np.array([height, width], np.int32), np.array([0, 0], np.int32)
    got = check_shapes("CropAndResize", image, np.array([[0, 0, 1, 1], [1, 0, 0, 1]], np.float32), owner, size)
    np.testing.assert_allclose(got[0], image[0], atol=1e-4)
    np.testing.assert_allclose(got[1], image[0, ::-1], atol=1e-4)


def test_samples_outside_the_image_are_extrapolated() -> None:
    """They have the value of the attr."""
    image, box = np.ones((1, 2, 2, 1), np.float32), np.array([[-3, -3, -2, -2]], np.float32)
    first, size = np.array([0], np.int32), np.array([2, 2], np.int32)
    got = run("CropAndResize", image, box, first, size, extrapolation_value=7.0)
    np.testing.assert_array_equal(got, np.full((1, 2, 2, 1), 7))


def test_crops_name_an_image_that_exists() -> None:
    """A box must have four numbers."""
    image, size = np.ones((1, 2, 2, 1), np.float32), np.array([1, 1], np.int32)
    with pytest.raises(OutOfRangeError, match="box_index has values outside"):
        run("CropAndResize", image, np.ones((1, 4), np.float32), np.array([1], np.int32), size)
    with pytest.raises(InvalidArgumentError, match=r"boxes must be 2-D\[4\]"):
        run("CropAndResize", image, np.ones(4, np.float32), np.array([0], np.int32), size)


@given(hnp.arrays(np.float64, (1, 3, 4), elements=st.floats(-0.5, 1.5)))
def test_outlines_only_touch_their_box(boxes: Array) -> None:
    """Every painted pixel lies on a side of some box; the images that came in stay as they were."""
    image = np.full((1, 9, 8, 1), 0.25, np.float32)
    got = check_shapes("DrawBoundingBoxes", image, boxes.astype(np.float32))
    assert (image == 0.25).all()
    limits = boxes[0].astype(np.float32) * np.array([8, 7, 8, 7], np.float32)
    for y, x in np.argwhere(got[0, ..., 0] != 0.25):
        assert any(y in (int(a), int(c)) or x in (int(b), int(d)) for a, b, c, d in limits)


@pytest.mark.parametrize(("op", "offset", "start"), [("ExtractGlimpse", 1.0, 3), ("ExtractGlimpseV2", 1.0, 5)])
def test_glimpses_in_cells_around_the_centre(op: str, offset: float, start: int) -> None:
    """The two versions take an offset in cells differently, as TensorFlow's do."""
    image = np.arange(9, dtype=np.float32).reshape(1, 9, 1, 1)
    size, offsets = np.array([3, 1], np.int32), np.array([[offset, 0]], np.float32)
    got = check_shapes(op, image, size, offsets, centered=True, normalized=False, noise="zero", uniform_noise=False)
    np.testing.assert_array_equal(got.ravel(), [start, start + 1, start + 2])


@given(st.floats(-2, 2, width=32))
def test_glimpses_past_the_edge_are_filled(offset: float) -> None:
    """With zeros, or with noise of the kind asked for."""
    image = np.ones((1, 4, 4, 1), np.float32)
    window, place = np.array([3, 3], np.int32), np.array([[offset, offset]], np.float32)
    zeros = run("ExtractGlimpse", image, window, place, noise="zero", uniform_noise=False)
    assert set(np.unique(zeros)) <= {0, 1}
    noisy = run("ExtractGlimpse", image, window, place, uniform_noise=True)
    assert ((noisy == 1) == (zeros == 1)).all()
    assert ((noisy >= 0) & (noisy <= 1)).all()


def test_sizes_that_are_tensors_stay_unknown() -> None:
    """The shape is known once the values are."""
    assert shapes("CropAndResize", (1, 8, 8, 3), (5, 4), (None,), (2,)) == [(5, None, None, 3)]


def test_image_gradients_are_added_in_order() -> None:
    """Bits that TensorFlow 2.21 gives for three boxes of one image, sample by sample, corner by corner."""
    grads = (np.random.default_rng(0).integers(0, 99, (3, 3, 2, 1)) / 99).astype(np.float32)
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.6, 0.5, 0.2, 1.2]], np.float32)
    sizes = np.array([1, 2, 3, 1], np.int32)
    got = run("CropAndResizeGradImage", grads, boxes, np.zeros(3, np.int32), sizes, T=DataType.FLOAT, method="bilinear")
    assert got.view(np.uint32).ravel().tolist() == [
        1068015539,
        1070205052,
        1068549360,
        1063214546,
        1067144481,
        1064349970,
    ]
