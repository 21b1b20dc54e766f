"""The parts of a softmax cross entropy that one of several shards of the classes knows, and their gradient.

Of 6 classes on two shards, label 4:

    shard 0, first_class 0    logits 1 2 3    logsumexp 3.41    target 0
    shard 1, first_class 3    logits 1 5 0    logsumexp 5.02    target 5        loss = log(e^3.41 + e^5.02) - 5

With all classes on one shard the loss is logsumexp - target. A vocabulary that was padded has classes that do not
count, from `classes_end` on; the logsumexp of a shard that has no others is -inf, and gradients there are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.transformers.attention_sizes import check_statistics_type
from ..checks import scalar_of
from ..dense import of_dense
from ..half_types import widen
from ..registry import Construction, Kernel, kernel


class _Shard(NamedTuple):
    """The logits of the classes that count, and where the labels are among them."""

    logits: Array
    rows: Array
    columns: Array
    """of the labels that are here"""


def _shard(logits: Array, labels: Array, first_class: Array, classes_end: int) -> _Shard:
    if logits.ndim != 2 or labels.shape != logits.shape[:1]:
        raise InvalidArgumentError(
            f"logits have the shape {shape_text(logits.shape)} and labels {shape_text(labels.shape)}; logits must have "
            "rank 2, and labels a number for each row"
        )
    first = scalar_of(first_class, "first_class")
    if classes_end and labels.size and labels.max() >= classes_end:
        raise InvalidArgumentError(
            f"label {labels.max()} is of no class: they end at classes_end = {classes_end}; labels below 0 are of none"
        )
    counting = logits if not classes_end else logits[:, : max(0, classes_end - first)]
    (rows,) = np.nonzero((labels >= max(0, first)) & (labels < first + counting.shape[1]))
    return _Shard(counting, rows, labels[rows] - first)


@kernel("Partita>SoftmaxCrossEntropy")
def cross_entropy(node: Construction) -> Kernel:
    """Per row the logsumexp, the greatest logit subtracted first, and the logit of the label."""
    check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])
    classes_end = int(node.attrs["classes_end"])

    def compute(logits: Array, labels: Array, first_class: Array) -> tuple[Array, Array]:
        shard = _shard(logits, labels, first_class, classes_end)
        wide = widen(shard.logits)
        greatest = np.maximum.reduce(wide, 1, initial=-np.inf)
        base = np.where(np.isneginf(greatest), wide.dtype.type(0), greatest)  # -inf - -inf would be NaN
        logsumexp = np.log(np.add.reduce(np.exp(wide - base[:, None]), 1)) + base
        target = np.zeros(len(wide), wide.dtype)
        target[shard.rows] = wide[shard.rows, shard.columns]
        return logsumexp, target

    return of_dense(compute)


@kernel("Partita>SoftmaxCrossEntropyGrad")
def cross_entropy_grad(node: Construction) -> Kernel:
    """softmax * d_logsumexp, and d_target at the label; 0 for classes that do not count."""
    check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])
    classes_end = int(node.attrs["classes_end"])

    def compute(logits: Array, labels: Array, first_class: Array, *by_row: Array) -> Array:
        shard = _shard(logits, labels, first_class, classes_end)
        for name, value in zip(("logsumexp", "d_logsumexp", "d_target"), by_row, strict=True):
            if value.shape != labels.shape:
                raise InvalidArgumentError(
                    f"{name} has the shape {shape_text(value.shape)}, but labels have {shape_text(labels.shape)}; give "
                    "a number for each row"
                )
        logsumexp, d_logsumexp, d_target = by_row
        none_counts = np.isneginf(logsumexp)
        base = np.where(none_counts, logsumexp.dtype.type(0), logsumexp)
        slopes = np.exp(widen(shard.logits) - base[:, None])
        slopes *= np.where(none_counts, d_logsumexp.dtype.type(0), d_logsumexp)[:, None]
        slopes[shard.rows, shard.columns] += d_target[shard.rows]
        d_logits = np.zeros(logits.shape, logits.dtype)
        d_logits[:, : slopes.shape[1]] = slopes
        return d_logits

    return of_dense(compute)
