"""Random crops lie in the image, have the shape and the area allowed, cover an object, and are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run, shapes

SIZE, SEED, SHARE = np.array([60, 80, 3], np.int32), np.array([5, 7]), np.float32(0.3)
BOXES = np.array([[[0.1, 0.2, 0.5, 0.9], [0.6, 0.6, 1.0, 1.0]]], np.float32)
RANGES: dict[str, Any] = {"aspect_ratio_range": (0.75, 1.33), "area_range": (0.2, 0.7)}
STATELESS = "StatelessSampleDistortedBoundingBox"


def test_crops_are_tensorflows_run_after_run() -> None:
    """TensorFlow 2.21 gives these for the seeds 5 and 7, in three runs of one session."""
    state, seeds = DeviceState(0), {"seed": 5, "seed2": 7}
    for top, left, height, width in ((1, 17, 54, 55), (8, 0, 41, 50), (3, 27, 56, 42)):
        attrs = RANGES | seeds | {"min_object_covered": 0.3}
        begin, size, box = run("SampleDistortedBoundingBox", SIZE, BOXES, state=state, **attrs)
        assert (begin.tolist(), size.tolist()) == ([top, left, 0], [height, width, -1])
        corners = [top / 60, left / 80, (top + height) / 60, (left + width) / 80]
        np.testing.assert_allclose(box, [[corners]], rtol=1e-6)
    begin, size, _ = check_shapes("SampleDistortedBoundingBoxV2", SIZE, BOXES, SHARE, **RANGES, **seeds)
    assert (begin.tolist(), size.tolist()) == ([1, 17, 0], [54, 55, -1])
    begin, size, _ = check_shapes(STATELESS, SIZE, BOXES, SHARE, SEED, **RANGES)
    assert (begin.tolist(), size.tolist()) == ([13, 2, 0], [45, 41, -1])


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**31), st.floats(0, 1, width=32))
def test_crops_keep_to_their_limits(height: int, width: int, seed: int, share: float) -> None:
    """Inside the image; in the range of areas, up to a row, or the whole image."""
    image, seeds = np.array([height, width, 3]), np.array([seed, 1])
    begin, size, _ = check_shapes(STATELESS, image, BOXES, np.float32(share), seeds, **RANGES)
    (top, left, _), (rows, columns, _) = begin.tolist(), size.tolist()
    assert 0 <= top <= top + rows <= height
    assert 0 <= left <= left + columns <= width
    is_whole = (rows, columns) == (height, width)
    assert is_whole or 0.2 * height * width * (1 - 1e-6) <= rows * columns <= 0.7 * height * width * (1 + 1e-6)


def test_the_whole_image_is_the_last_resort() -> None:
    """Where no attempt covers enough, and where a box has no pixel."""
    for boxes, share in ((BOXES, 1.5), (BOXES[:, :, ::-1], 0.1)):
        begin, size, box = run(STATELESS, SIZE, boxes, np.float32(share), SEED)
        assert (begin.tolist(), size.tolist()) == ([0, 0, 0], [60, 80, -1])
        np.testing.assert_array_equal(box, [[[0, 0, 1, 1]]])


def test_without_boxes_the_image_is_the_object() -> None:
    """If the attr says so."""
    none = np.zeros((1, 0, 4), np.float32)
    _, size, _ = run(STATELESS, SIZE, none, SHARE, SEED, use_image_if_no_bounding_boxes=True, **RANGES)
    assert size.tolist() != [60, 80, -1]
    with pytest.raises(InvalidArgumentError, match="No bounding boxes provided as input"):
        run(STATELESS, SIZE, none, SHARE, SEED)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int64])
def test_sizes_have_many_types(dtype: type[np.generic]) -> None:
    """Begin and size are of the type of the image's size, in which -1 wraps around."""
    begin, size, _ = run(STATELESS, SIZE.astype(dtype), BOXES, SHARE, SEED, **RANGES)
    assert begin.tolist() == [13, 2, 0]
    assert size[2] == np.array(-1).astype(dtype)


@pytest.mark.parametrize(
    ("size", "boxes", "share", "message"),
    [
        (SIZE[:2], BOXES, SHARE, r"image_size must contain 3 elements\[2\]"),
        (SIZE[None], BOXES, SHARE, r"image_size must be 1-dimensional\[1,3\]"),
        (-SIZE, BOXES, SHARE, "image height cannot be >= int32 max"),
        (SIZE, BOXES[0], SHARE, r"input boxes must be 3-dimensional \[batch, num_boxes, coords\]: \[2,4\]"),
        (SIZE, BOXES[..., :3], SHARE, r"bounding boxes must have shape \[4\] or \[\*, 4\], got \[1,2,3\]"),
        (SIZE, BOXES + 1, SHARE, r"All bounding box coordinates must be in \[0.0, 1.0\]: 1.1"),
        (SIZE, BOXES, np.float32(-0.1), "Min object covered must be non-negative: -0.1"),
        (SIZE, BOXES, np.array([0.1], np.float32), r"min_object_covered must be 0-D, got shape \[1\]"),
    ],
)
def test_inputs_are_checked(size: np.ndarray, boxes: np.ndarray, share: Any, message: str) -> None:
    """The messages are TensorFlow's."""
    with pytest.raises(InvalidArgumentError, match=message):
        run(STATELESS, size, boxes, share, SEED)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"aspect_ratio_range": (1.0,)}, "Aspect ratio range field must specify 2 dimensions"),
        ({"aspect_ratio_range": (-1.0, 1.0)}, r"Aspect ratio range must be non-negative: \[-1, 1\]"),
        ({"area_range": (0.0, 0.5)}, r"Area range must be non-negative: \[0, 0.5\]"),
        ({"area_range": (0.5, 2.0)}, r"Area range must be less then or equal to 1.0: \[0.5, 2\]"),
        ({"max_attempts": 0}, "Max attempts must be non-negative: 0"),
    ],
)
def test_attrs_are_checked(attrs: dict[str, Any], message: str) -> None:
    """The messages are TensorFlow's."""
    with pytest.raises(InvalidArgumentError, match=message):
        run(STATELESS, SIZE, BOXES, SHARE, SEED, **attrs)


def test_shapes_are_fixed() -> None:
    """Whatever is known of the inputs; wrong ones are refused before the run."""
    assert shapes("SampleDistortedBoundingBox", None, None) == [(3,), (3,), (1, 1, 4)]
    with pytest.raises(InvalidArgumentError, match="must be equal"):
        shapes(STATELESS, (3,), (1, 2, 4), (), (3,))
