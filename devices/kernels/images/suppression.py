"""The choice among overlapping boxes: the best box, then the best of those that overlap no chosen box too much.

    scores 0.9 0.8 0.7, box 1 overlaps box 0 by 0.6, threshold 0.5
    hard: boxes 0 and 2
    soft: the score of box 1 falls by exp(-0.5 / sigma * 0.6 ** 2), whatever the threshold, and it competes again

Boxes have two opposite corners, in any order. Equal scores are in the order of the boxes. Arithmetic is in the type of
the boxes, half types included, as in TensorFlow.

The combined op takes boxes [images, boxes, classes or 1, 4] and scores [images, boxes, classes]: it chooses for each
class, and then among the chosen ones of all classes. All images have equally many rows; unused ones are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel

Similarity = Callable[[Array, int], Array]
"""from some boxes' numbers and one box's number to how similar each of them is to that one"""


class Corners(NamedTuple):
    """Boxes [n, 2], lower and upper corners, and their areas [n]."""

    low: Array
    high: Array
    areas: Array


def corners_of(boxes: Array) -> Corners:
    """The ordered corners of boxes [n, 4]."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return Corners(low, high, (high[:, 0] - low[:, 0]) * (high[:, 1] - low[:, 1]))


def overlap(boxes: Array) -> Similarity:
    """Intersection over union; zero for boxes without area."""
    low, high, areas = corners_of(boxes)

    def with_one(others: Array, one: int) -> Array:
        sides = np.minimum(high[others], high[one]) - np.maximum(low[others], low[one])
        np.maximum(sides, 0, out=sides)
        shared = sides[:, 0] * sides[:, 1]
        has_area = (areas[others] > 0) & (areas[one] > 0)
        return np.where(has_area, shared / np.where(has_area, areas[others] + areas[one] - shared, 1), 0)

    return with_one


def ranked(scores: Array, least: Array) -> Array:
    """Numbers of the boxes whose score is greater than `least`, best first."""
    candidates = np.flatnonzero(scores > least)
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def suppressed(candidates: Array, similarity: Similarity, threshold: Array, limit: int) -> list[int]:
    """The chosen ones of `candidates`, which are best first; each drops those that are more similar to it."""
    chosen: list[int] = []
    while candidates.size and len(chosen) < limit:
        best = int(candidates[0])
        chosen.append(best)
        candidates = candidates[1:]
        candidates = candidates[~(similarity(candidates, best) > threshold)]
    return chosen


class Soft(NamedTuple):
    """The score to be exceeded and the width of soft suppression, in the type of the scores."""

    least: Array
    sigma: Array


def softly_suppressed(scores: Array, similarity: Similarity, soft: Soft, limit: int) -> tuple[list[int], Array]:
    """Numbers and lowered scores of the chosen boxes.

    A candidate's score is lowered only when it is the best one left, for the boxes chosen since it was last: that order
    of the factors decides the last bit.
    """
    heap = [(-float(scores[i]), int(i), 0) for i in np.flatnonzero(scores > soft.least)]
    heapify(heap)
    chosen: list[int] = []
    lowered: list[float] = []
    while heap and len(chosen) < limit:
        negative, candidate, seen = heappop(heap)
        score = _lowered(-negative, similarity(np.array(chosen[seen:], np.intp), candidate), soft)
        if score == -negative:
            chosen.append(candidate)
            lowered.append(score)
        elif score > soft.least:
            heappush(heap, (-score, candidate, len(chosen)))
    return chosen, np.array(lowered, scores.dtype)


def _lowered(score: float, similarities: Array, soft: Soft) -> float:
    dtype = similarities.dtype
    exponents = dtype.type(-0.5) / soft.sigma * similarities * similarities
    weights = np.exp(exponents.astype(np.float64)).astype(dtype)
    factors = np.concatenate([np.array([score], dtype), weights[::-1]])
    return float(np.multiply.accumulate(factors)[-1])


def _check(boxes: Array, scores: Array, limit: Array, threshold: Array) -> None:
    require(limit.ndim == 0, f"max_output_size must be 0-D, got shape {shape_text(limit.shape)}")
    require(threshold.ndim == 0, f"iou_threshold must be 0-D, got shape {shape_text(threshold.shape)}")
    require(bool(0 <= threshold <= 1), "iou_threshold must be in [0, 1]")
    require(boxes.ndim == 2, f"boxes must be 2-D{shape_text(boxes.shape)}")
    require(boxes.shape[1] == 4, "boxes must have 4 columns")
    require(scores.shape == boxes.shape[:1], "scores has incompatible shape")
    require(bool(limit >= 0), "output size must be non-negative")


def _padded(values: Array, limit: int, pads: bool) -> Array:
    return np.concatenate([values, np.zeros(limit - len(values), values.dtype)]) if pads else values


@kernel("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4")
def non_max_suppression(node: Construction) -> Kernel:
    """Numbers of the best boxes, best first, none of which overlaps a better one by more than the threshold."""
    fixed, pads = node.attrs.get("iou_threshold"), bool(node.attrs.get("pad_to_max_output_size"))
    counts = len(node.output_types) > 1

    def choose(boxes: Array, scores: Array, limit: Array, *thresholds: Array) -> Array | tuple[Array, np.int32]:
        threshold = np.asarray(fixed, np.float32) if fixed is not None else thresholds[0]
        least = thresholds[1] if len(thresholds) > 1 else np.asarray(np.finfo(scores.dtype).min)
        _check(boxes, scores, limit, threshold)
        least, threshold = (value.astype(scores.dtype) for value in (least, threshold))
        chosen = suppressed(ranked(scores, least), overlap(boxes), threshold, int(limit))
        indices = _padded(np.array(chosen, np.int32), int(limit), pads)
        return (indices, np.int32(len(chosen))) if counts else indices

    return choose


@kernel("NonMaxSuppressionV5")
def non_max_suppression_soft(node: Construction) -> Kernel:
    """As V4, with the scores of the chosen boxes; soft where sigma is positive."""
    pads = bool(node.attrs["pad_to_max_output_size"])

    def choose(
        boxes: Array, scores: Array, limit: Array, threshold: Array, least: Array, sigma: Array
    ) -> tuple[Array, Array, np.int32]:
        _check(boxes, scores, limit, threshold)
        require(sigma.ndim == 0, f"soft_nms_sigma must be 0-D, got shape {shape_text(sigma.shape)}")
        require(bool(sigma >= 0), "soft_nms_sigma_val must be >= 0")
        if sigma > 0:
            soft = Soft(least, sigma)
            chosen, values = softly_suppressed(scores, overlap(boxes), soft, int(limit))
        else:
            chosen = suppressed(ranked(scores, least), overlap(boxes), threshold, int(limit))
            values = scores[chosen]
        indices = _padded(np.array(chosen, np.int32), int(limit), pads)
        return indices, _padded(values, int(limit), pads), np.int32(len(chosen))

    return choose


@kernel("NonMaxSuppressionWithOverlaps")
def non_max_suppression_with_overlaps(node: Construction) -> Kernel:
    """As NonMaxSuppressionV3, with the similarity of each two boxes in a matrix."""

    def choose(overlaps: Array, scores: Array, limit: Array, threshold: Array, least: Array) -> Array:
        require(overlaps.ndim == 2, f"overlaps must be 2-D{shape_text(overlaps.shape)}")
        require(overlaps.shape[0] == overlaps.shape[1], f"overlaps must be square{shape_text(overlaps.shape)}")
        require(scores.shape == overlaps.shape[:1], "scores has incompatible shape")

        def similarity(others: Array, one: int) -> Array:
            return np.asarray(overlaps[others, one])

        return np.array(suppressed(ranked(scores, least), similarity, threshold, int(limit)), np.int32)

    return choose


def _check_combined(boxes: Array, scores: Array, per_class: Array, total: Array, threshold: Array) -> None:
    require(boxes.ndim == 4, f"boxes must be 4-D{shape_text(boxes.shape)}")
    require(scores.ndim == 3, f"scores must be 3-D{shape_text(scores.shape)}")
    require(per_class.ndim == 0, f"max_size_per_class must be 0-D, got shape {shape_text(per_class.shape)}")
    require(bool(per_class > 0), "max_size_per_class must be positive")
    require(total.ndim == 0, f"max_total_size must be 0-D, got shape {shape_text(total.shape)}")
    require(bool(total > 0), "max_total_size must be > 0")
    require(bool(0 <= threshold <= 1), "iou_threshold must be in [0, 1]")
    require(boxes.shape[3] == 4, "boxes must have 4 columns")
    require(boxes.shape[0] == scores.shape[0], "boxes and scores must have same batch size")
    require(boxes.shape[1] == scores.shape[1], "scores has incompatible shape")
    require(boxes.shape[2] in (1, scores.shape[2]), "third dimension of boxes must be either 1 or num classes")


def _best(boxes: Array, scores: Array, limit: int, threshold: Array, least: Array) -> tuple[Array, Array, Array]:
    """The chosen boxes [n, 4] of one image, their scores and classes, best first; by class where scores are equal."""
    chosen: list[tuple[int, int]] = []
    for label in range(scores.shape[1]):
        similarity = overlap(boxes[:, label if boxes.shape[1] > 1 else 0])
        candidates = ranked(scores[:, label], least)
        chosen += [(box, label) for box in suppressed(candidates, similarity, threshold, limit)]
    numbers, labels = np.array(chosen, np.intp).reshape(-1, 2).T
    order = np.argsort(-scores[numbers, labels], kind="stable")
    numbers, labels = numbers[order], labels[order]
    return boxes[numbers, labels if boxes.shape[1] > 1 else 0], scores[numbers, labels], labels


@kernel("CombinedNonMaxSuppression")
def combined_non_max_suppression(node: Construction) -> Kernel:
    """Boxes, scores and classes of the best of all classes, and how many there are in each image."""
    pads, clips = bool(node.attrs["pad_per_class"]), bool(node.attrs["clip_boxes"])

    def choose(
        boxes: Array, scores: Array, per_class: Array, total: Array, threshold: Array, least: Array
    ) -> tuple[Array, Array, Array, Array]:
        _check_combined(boxes, scores, per_class, total, threshold)
        images, count, classes = scores.shape
        rows = min(int(total), int(per_class) * classes) if pads else int(total)
        best_boxes, best_scores = np.zeros((images, rows, 4), np.float32), np.zeros((images, rows), np.float32)
        labels, valid = np.zeros((images, rows), np.float32), np.zeros(images, np.int32)
        for image in range(images):
            found = _best(boxes[image], scores[image], min(int(per_class), count), threshold, least)
            n = valid[image] = min(len(found[1]), rows)
            best_boxes[image, :n], best_scores[image, :n], labels[image, :n] = (part[:n] for part in found)
        return np.clip(best_boxes, 0, 1) if clips else best_boxes, best_scores, labels, valid

    return choose
