"""No two chosen boxes overlap too much; where suppression is soft, scores fall instead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run, shapes

ROW = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 99, 1, 100]])
BOXES_IN_A_ROW, SCORES = ROW.astype(np.float32), np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)

BOXES = hnp.arrays(np.float64, st.tuples(st.integers(0, 8), st.just(4)), elements=st.floats(0, 1)).map(np.float32)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Intersection over union."""
    (ay, ax, ty, tx), (by, bx, uy, ux) = ([*np.minimum(v[:2], v[2:]), *np.maximum(v[:2], v[2:])] for v in (a, b))
    shared = max(min(ty, uy) - max(ay, by), 0) * max(min(tx, ux) - max(ax, bx), 0)
    union = (ty - ay) * (tx - ax) + (uy - by) * (ux - bx) - shared
    return float(shared / union) if union > 0 else 0.0


@given(BOXES, st.integers(0, 9), st.floats(0.0625, 0.9375, width=16), st.integers(0, 99))
def test_chosen_boxes_are_the_best_that_do_not_overlap(boxes: Array, limit: int, threshold: float, seed: int) -> None:
    """Greedily by score; every box left out overlaps a better chosen one, or the limit was reached."""
    scores = np.random.default_rng(seed).permutation(len(boxes)).astype(np.float32)
    got = check_shapes("NonMaxSuppressionV2", boxes, scores, np.int32(limit), np.float32(threshold))
    expected: list[int] = []
    for candidate in np.argsort(-scores):
        if len(expected) < limit and all(overlap(boxes[candidate], boxes[i]) <= threshold + 1e-6 for i in expected):
            expected.append(int(candidate))
    assert got.tolist() == expected or any(
        abs(overlap(boxes[i], boxes[j]) - threshold) < 1e-3 for i in range(len(boxes)) for j in range(i)
    )


@given(BOXES, st.integers(0, 9), st.floats(0.0625, 0.9375, width=16), st.booleans())
def test_versions_choose_the_same_boxes(boxes: Array, limit: int, threshold: float, pads: bool) -> None:
    """V4 counts and pads them, V5 adds their scores, and a matrix of overlaps says the same as the boxes."""
    scores = np.random.default_rng(len(boxes)).random(len(boxes), np.float32)
    arguments = scores, np.int32(limit), np.float32(threshold), np.float32(0.25)
    plain = check_shapes("NonMaxSuppressionV3", boxes, *arguments)
    chosen, count = check_shapes("NonMaxSuppressionV4", boxes, *arguments, pad_to_max_output_size=pads)
    assert chosen[:count].tolist() == plain.tolist()
    assert chosen[count:].tolist() == [0] * (limit - count if pads else 0)
    again, best, n = check_shapes("NonMaxSuppressionV5", boxes, *arguments, np.float32(0), pad_to_max_output_size=pads)
    assert (again.tolist(), n) == (chosen.tolist(), count)
    np.testing.assert_array_equal(best[:n], scores[plain])
    overlaps = np.array([[overlap(a, b) for a in boxes] for b in boxes], np.float32).reshape(len(boxes), len(boxes))
    if not (np.abs(overlaps - threshold) < 1e-3).any():
        assert check_shapes("NonMaxSuppressionWithOverlaps", overlaps, *arguments).tolist() == plain.tolist()


def test_scores_fall_where_suppression_is_soft() -> None:
    """Values that TensorFlow 2.21 gives; the threshold plays no part."""
    chosen, scores, count = check_shapes(
        "NonMaxSuppressionV5", BOXES_IN_A_ROW[:5], SCORES[:5], np.int32(6), *THRESHOLDS
    )
    assert (chosen.tolist(), count) == ([3, 0, 1, 4, 2], 5)
    np.testing.assert_allclose(scores, [0.95, 0.9, 0.38400355, 0.2560026, 0.19697244], rtol=1e-6)


THRESHOLDS = np.float32(1), np.float32(0.1), np.float32(0.5)


def test_classes_compete_for_the_places_of_an_image() -> None:
    """Values that TensorFlow 2.21 gives: two boxes of each class, clipped to the image."""
    scores = np.stack([SCORES, SCORES[::-1] / 2], 1)[None]
    boxes, best, labels, count = check_shapes(
        "CombinedNonMaxSuppression",
        BOXES_IN_A_ROW[None, :, None],
        scores,
        np.int32(2),
        np.int32(5),
        np.float32(0.5),
        np.float32(0.2),
    )
    np.testing.assert_allclose(best, [[0.95, 0.9, 0.475, 0.45, 0]], rtol=1e-6)
    assert (labels.tolist(), count.tolist()) == ([[0, 0, 1, 1, 0]], [4])
    np.testing.assert_allclose(boxes[0, 2], [0, 0, 1, 0.9], rtol=1e-6)
    assert boxes.max() == 1


def test_boxes_of_their_own_for_each_class() -> None:
    """As many runs of the plain op, sorted together; the places of a class can be all there are."""
    rng = np.random.default_rng(0)
    boxes, scores = rng.random((2, 7, 3, 4), np.float32), rng.random((2, 7, 3), np.float32)
    sizes = np.int32(2), np.int32(20), np.float32(0.25), np.float32(0.3)
    got = check_shapes("CombinedNonMaxSuppression", boxes, scores, *sizes, pad_per_class=True)
    assert got[0].shape == (2, 6, 4)
    for image in range(2):
        each = [
            scores[image, run("NonMaxSuppressionV3", boxes[image, :, k], scores[image, :, k], sizes[0], *sizes[2:]), k]
            for k in range(3)
        ]
        assert got[1][image, : got[3][image]].tolist() == sorted(np.concatenate(each).tolist(), reverse=True)


def test_wrong_arguments() -> None:
    """TensorFlow's messages."""
    half, one = np.float32(0.5), np.int32(1)
    with pytest.raises(InvalidArgumentError, match=r"iou_threshold must be in \[0, 1\]"):
        run("NonMaxSuppressionV4", BOXES_IN_A_ROW, SCORES, one, np.float32(2), half)
    with pytest.raises(InvalidArgumentError, match="output size must be non-negative"):
        run("NonMaxSuppressionV4", BOXES_IN_A_ROW, SCORES, np.int32(-1), half, half)
    with pytest.raises(InvalidArgumentError, match="third dimension of boxes must be either"):
        run(
            "CombinedNonMaxSuppression",
            np.ones((1, 2, 3, 4), np.float32),
            np.ones((1, 2, 2), np.float32),
            one,
            one,
            half,
            half,
        )
    with pytest.raises(InvalidArgumentError, match="overlaps must be square"):
        run("NonMaxSuppressionWithOverlaps", np.ones((2, 3), np.float32), SCORES[:2], one, half, half)


def test_how_many_are_chosen_is_known_only_if_padded() -> None:
    """Shapes before the run."""
    assert shapes("NonMaxSuppressionV3", (5, 4), (5,), (), (), ()) == [(None,)]
    assert shapes("NonMaxSuppressionV4", (5, 4), (5,), np.int32(3), (), ()) == [(None,), ()]
    assert shapes("NonMaxSuppressionV4", (5, 4), (5,), np.int32(3), (), (), pad_to_max_output_size=True) == [(3,), ()]
