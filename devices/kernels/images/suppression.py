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
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel

Similarity = Callable[[Array, Array], Array]
"""from the numbers of some boxes [m] and of others [n] to how similar each is to each, [m, n]"""

_BLOCK = 32  # candidates that are compared with each other at a time; measured best from 16 to 64


def overlap(boxes: Array) -> Similarity:
    """Intersection over union; zero for boxes without area."""
    facts = np.empty((5, len(boxes)), boxes.dtype)  # rows: lower corner, upper corner, area
    np.minimum(boxes[:, :2].T, boxes[:, 2:].T, out=facts[:2])
    np.maximum(boxes[:, :2].T, boxes[:, 2:].T, out=facts[2:4])
    np.multiply(facts[2] - facts[0], facts[3] - facts[1], out=facts[4])
    without = ~(facts[4] > 0)
    if without.any():  # a point shares nothing with any box, and an area of one keeps the quotient finite
        facts[:, without] = np.array([[0], [0], [0], [0], [1]], boxes.dtype)

    def with_each(some: Array, others: Array) -> Array:
        one, two = facts[:, some, None], facts[:, None, others]
        sides = np.minimum(one[2:4], two[2:4])
        sides -= np.maximum(one[:2], two[:2])
        np.maximum(sides, 0, out=sides)
        shared: Array = sides[0]
        shared *= sides[1]
        union: Array = one[4] + two[4]
        union -= shared
        shared /= union
        return shared

    return with_each


def ranked(scores: Array, least: Array) -> Array:
    """Numbers of the boxes whose score is greater than `least`, best first."""
    candidates = np.flatnonzero(scores > least)
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def suppressed(candidates: Array, similarity: Similarity, threshold: Array, limit: int) -> list[int]:
    """The chosen ones of `candidates`, which are best first; each drops those that are more similar to it.

    Candidates are compared in blocks, with those chosen from earlier blocks and with each other: one numpy call for a
    block in place of one for each chosen box.
    """
    chosen: list[int] = []
    for start in range(0, candidates.size, _BLOCK):
        block = candidates[start : start + _BLOCK]
        if chosen:
            block = block[~(similarity(np.array(chosen, np.intp), block) > threshold).any(axis=0)]
        dropped = np.zeros(block.size, np.bool_)
        for number, drops in enumerate(similarity(block, block) > threshold):
            if dropped[number]:
                continue
            if len(chosen) == limit:
                return chosen
            chosen.append(int(block[number]))
            dropped |= drops
    return chosen


class Soft(NamedTuple):
    """The score to be exceeded and the width of soft suppression, in the type of the scores."""

    least: Array
    sigma: Array


class _Weights:
    """The factors by which chosen boxes lower the scores of others, by ranks of both; computed block by block."""

    def __init__(self, candidates: Array, similarity: Similarity, sigma: Array) -> None:
        self._candidates, self._similarity, self._sigma = candidates, similarity, sigma
        self._blocks: dict[tuple[int, int], Array] = {}

    def factor(self, chosen: int, other: int) -> Any:  # Any: a scalar of the type of the boxes
        """exp(-similarity ** 2 / (2 sigma)) of two candidates."""
        key = chosen // _BLOCK, other // _BLOCK
        if key not in self._blocks:
            self._blocks[key] = self._block(*(self._candidates[at * _BLOCK : (at + 1) * _BLOCK] for at in key))
        return self._blocks[key][chosen % _BLOCK, other % _BLOCK]

    def _block(self, some: Array, others: Array) -> Array:
        similarities = self._similarity(some, others)
        dtype = similarities.dtype
        exponents = dtype.type(-0.5) / self._sigma * similarities * similarities
        return np.asarray(np.exp(exponents.astype(np.float64)), dtype)


def softly_suppressed(scores: Array, similarity: Similarity, soft: Soft, limit: int) -> tuple[list[int], Array]:
    """Numbers and lowered scores of the chosen boxes.

    A candidate's score is lowered only when it is the best one left, for the boxes chosen since it was last: that order
    of the factors decides the last bit.
    """
    candidates = ranked(scores, soft.least)
    weights = _Weights(candidates, similarity, soft.sigma)
    heap = [(-float(scores[number]), number, rank, 0) for rank, number in enumerate(candidates.tolist())]
    ranks: list[int] = []
    lowered: list[float] = []
    while heap and len(ranks) < limit:
        negative, number, rank, seen = heappop(heap)
        lower = scores.dtype.type(-negative)
        for chosen in reversed(ranks[seen:]):
            lower = lower * weights.factor(chosen, rank)
        score = float(lower)
        if score == -negative:
            ranks.append(rank)
            lowered.append(score)
        elif score > soft.least:
            heappush(heap, (-score, number, rank, len(ranks)))
    return candidates[ranks].tolist(), np.array(lowered, scores.dtype)


def _check_scalars(**numbers: Array) -> None:
    for name, value in numbers.items():
        if value.ndim != 0:
            raise InvalidArgumentError(f"{name} must be 0-D, got shape {shape_text(value.shape)}")


def _check(boxes: Array, scores: Array, limit: Array, threshold: Array, least: Array) -> None:
    _check_scalars(max_output_size=limit, iou_threshold=threshold, score_threshold=least)
    require(bool(0 <= threshold <= 1), "iou_threshold must be in [0, 1]")
    if boxes.ndim != 2:
        raise InvalidArgumentError(f"boxes must be 2-D{shape_text(boxes.shape)}")
    require(boxes.shape[1] == 4, "boxes must have 4 columns")
    require(scores.shape == boxes.shape[:1], "scores has incompatible shape")
    require(bool(limit >= 0), "output size must be non-negative")


def _padded(values: Array, limit: int, pads: bool) -> Array:
    missing = output_shape((limit,), values.dtype)[0] - len(values) if pads else 0
    return np.concatenate([values, np.zeros(missing, values.dtype)]) if missing else values


@kernel("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4")
def non_max_suppression(node: Construction) -> Kernel:
    """Numbers of the best boxes, best first, none of which overlaps a better one by more than the threshold."""
    fixed, pads = node.attrs.get("iou_threshold"), bool(node.attrs.get("pad_to_max_output_size"))
    counts = len(node.output_types) > 1

    def choose(boxes: Array, scores: Array, limit: Array, *thresholds: Array) -> Array | tuple[Array, np.int32]:
        threshold = np.asarray(fixed, np.float32) if fixed is not None else thresholds[0]
        least = thresholds[1] if len(thresholds) > 1 else np.asarray(np.finfo(scores.dtype).min)
        _check(boxes, scores, limit, threshold, least)
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
        _check(boxes, scores, limit, threshold, least)
        _check_scalars(soft_nms_sigma=sigma)
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
        if overlaps.ndim != 2:
            raise InvalidArgumentError(f"overlaps must be 2-D{shape_text(overlaps.shape)}")
        if overlaps.shape[0] != overlaps.shape[1]:
            raise InvalidArgumentError(f"overlaps must be square{shape_text(overlaps.shape)}")
        require(scores.shape == overlaps.shape[:1], "scores has incompatible shape")
        _check_scalars(max_output_size=limit, overlap_threshold=threshold, score_threshold=least)
        require(bool(limit >= 0), "output size must be non-negative")

        def similarity(some: Array, others: Array) -> Array:
            return np.asarray(overlaps[np.ix_(some, others)])

        return np.array(suppressed(ranked(scores, least), similarity, threshold, int(limit)), np.int32)

    return choose


def _check_combined(boxes: Array, scores: Array, per_class: Array, total: Array, *thresholds: Array) -> None:
    if boxes.ndim != 4:
        raise InvalidArgumentError(f"boxes must be 4-D{shape_text(boxes.shape)}")
    if scores.ndim != 3:
        raise InvalidArgumentError(f"scores must be 3-D{shape_text(scores.shape)}")
    _check_scalars(max_size_per_class=per_class)
    require(bool(per_class > 0), "max_size_per_class must be positive")
    _check_scalars(max_total_size=total)
    require(bool(total > 0), "max_total_size must be > 0")
    threshold, least = thresholds
    _check_scalars(iou_threshold=threshold, score_threshold=least)
    require(bool(0 <= threshold <= 1), "iou_threshold must be in [0, 1]")
    require(boxes.shape[3] == 4, "boxes must have 4 columns")
    require(boxes.shape[0] == scores.shape[0], "boxes and scores must have same batch size")
    require(boxes.shape[1] == scores.shape[1], "scores has incompatible shape")
    require(boxes.shape[2] in (1, scores.shape[2]), "third dimension of boxes must be either 1 or num classes")


def _best(boxes: Array, scores: Array, limit: int, threshold: Array, least: Array) -> tuple[Array, Array, Array]:
    """The chosen boxes [n, 4] of one image, their scores and classes, best first; by class where scores are equal."""
    chosen: list[tuple[int, int]] = []
    similarities = [overlap(boxes[:, label]) for label in range(boxes.shape[1])]  # of each class, or one for all
    for label in range(scores.shape[1]):
        similarity, candidates = similarities[label % len(similarities)], ranked(scores[:, label], least)
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
        _check_combined(boxes, scores, per_class, total, threshold, least)
        images, count, classes = scores.shape
        rows = min(int(total), int(per_class) * classes) if pads else int(total)
        output_shape((images, rows, 4), np.dtype(np.float32))
        best_boxes, best_scores = np.zeros((images, rows, 4), np.float32), np.zeros((images, rows), np.float32)
        labels, valid = np.zeros((images, rows), np.float32), np.zeros(images, np.int32)
        for image in range(images):
            found = _best(boxes[image], scores[image], min(int(per_class), count), threshold, least)
            n = valid[image] = min(len(found[1]), rows)
            best_boxes[image, :n], best_scores[image, :n], labels[image, :n] = (part[:n] for part in found)
        return np.clip(best_boxes, 0, 1) if clips else best_boxes, best_scores, labels, valid

    return choose
