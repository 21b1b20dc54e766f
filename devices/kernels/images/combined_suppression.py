"""The choice among overlapping boxes for each class, then among the classes, for each image of a batch.

Boxes are [images, boxes, classes or 1, 4], scores [images, boxes, classes]. All classes share the boxes if there is one
of each. Outputs have the same number of rows for each image; unused rows are zero.
"""

from __future__ import annotations

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .suppression import overlap, ranked, suppressed


def _check(boxes: Array, scores: Array, per_class: Array, total: Array, threshold: Array) -> None:
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
        _check(boxes, scores, per_class, total, threshold)
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
