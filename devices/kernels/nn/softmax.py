"""Softmax, its logarithm, and the cross entropies that contain it, along the last axis.

The row's maximum is subtracted first, so that no exponential overflows.
"""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..arrays.gather import row_starts
from ..elementwise.exponential import exp_float32
from ..elementwise.logarithm import log_float32
from ..half_types import in_float32
from ..reductions.in_order import LARGE, SHORT, reduce_lists
from ..registry import Construction, Kernel, kernel

_LANES = 8  # float32 numbers in a register
_NARROW, _MANY = 32, 1 << 10  # up to so many classes, the maxima of so many logits are found faster class by class


def _shifted(logits: Array) -> Array:
    """A new array: `logits` minus the maximum of each row; an empty row stays empty."""
    if not logits.size:
        return logits.copy()
    classes = logits.shape[-1]
    if logits.ndim > 1 and classes <= _NARROW and logits.size > _MANY:
        greatest = np.maximum.reduce(np.ascontiguousarray(logits.reshape(-1, classes).T), axis=0)
        return np.asarray(logits - greatest.reshape(*logits.shape[:-1], 1))
    return np.asarray(logits - np.maximum.reduce(logits, -1, keepdims=True))


def _softmax(logits: Array) -> Array:
    if logits.ndim < 1:
        raise InvalidArgumentError(f"logits must have >= 1 dimension, got {shape_text(logits.shape)}")
    powers = np.exp(_shifted(logits))
    powers /= np.add.reduce(powers, -1, keepdims=True)
    return powers


def _log_softmax(logits: Array) -> Array:
    if logits.ndim < 1:
        raise InvalidArgumentError(f"logits must have >= 1 dimension, got {shape_text(logits.shape)}")
    shifted = _shifted(logits)
    return np.asarray(shifted - np.log(np.add.reduce(np.exp(shifted), -1, keepdims=True)))


@kernel("Softmax")
def softmax(node: Construction) -> Kernel:
    """exp(x) over its row's sum."""
    return in_float32(_softmax, node.output_types[0])


@kernel("LogSoftmax")
def log_softmax(node: Construction) -> Kernel:
    """The logarithm of softmax, computed without taking that of a small number."""
    return in_float32(_log_softmax, node.output_types[0])


def _is_small(powers: Array) -> bool:
    """Whether TensorFlow's bits cost little: of float32 numbers in short rows."""
    return powers.shape[1] <= SHORT and powers.size <= LARGE and powers.dtype == np.float32


def _totals(powers: Array, shifted: Array) -> Array:
    """The sums of the rows of `powers`, the exponentials of `shifted`, with TensorFlow's bits if both are small.

    There, exponentials beyond whole registers of a row are computed singly, and all but correctly rounded.
    """
    if not _is_small(powers):
        return np.asarray(np.add.reduce(powers, -1))
    classes = powers.shape[1]
    numbers = np.ascontiguousarray(powers.T)
    whole = classes - classes % _LANES
    if whole < classes:
        numbers[whole:] = np.exp(shifted[:, whole:].T, dtype=np.float64)
    return np.asarray(reduce_lists(np.add, numbers))


def _broadcast(features: Array, labels: Array) -> Array:
    """`features` in the common shape of both, as a matrix."""
    if features.shape != labels.shape:
        try:
            features = np.broadcast_to(features, np.broadcast_shapes(features.shape, labels.shape))
        except ValueError:
            raise InvalidArgumentError(
                "logits and labels must be broadcastable: "
                f"logits_size={shape_text(features.shape)} labels_size={shape_text(labels.shape)}"
            ) from None
    if features.ndim != 2:
        raise InvalidArgumentError("logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional")
    return features


def _cross_entropy(features: Array, labels: Array) -> tuple[Array, Array]:
    shifted = _shifted(_broadcast(features, labels))
    powers = exp_float32(shifted)
    total = _totals(powers, shifted)
    logarithms = log_float32(total) if _is_small(powers) else np.log(total)
    loss = np.add.reduce(labels * (logarithms[:, None] - shifted), -1)  # of a one-hot row, in any order
    return loss, powers / total[:, None] - labels


@kernel("SoftmaxCrossEntropyWithLogits")
def cross_entropy(node: Construction) -> Kernel:
    """Per row -sum(labels * log softmax(features)), and its gradient with respect to the features."""
    return in_float32(_cross_entropy, node.output_types[0])


def _sparse_cross_entropy(features: Array, labels: Array) -> tuple[Array, Array]:
    _check_sparse(features, labels)
    shifted = _shifted(features)
    powers = exp_float32(shifted)
    total = _totals(powers, shifted)
    places = row_starts(*features.shape)[:, 0] + labels
    loss = np.log(total, dtype=np.float64).astype(total.dtype) - shifted.reshape(-1).take(places)
    gradient = np.divide(powers, total[:, None], order="C")  # so that the next line changes it and no copy
    gradient.reshape(-1)[places] -= 1
    return loss, gradient


def _check_sparse(features: Array, labels: Array) -> None:
    if features.ndim != 2:
        raise InvalidArgumentError(f"logits must be 2-D, but got shape {shape_text(features.shape)}")
    if labels.ndim != 1:
        raise InvalidArgumentError(f"labels must be 1-D, but got shape {shape_text(labels.shape)}")
    if features.shape[0] != labels.shape[0]:
        raise InvalidArgumentError(
            "logits and labels must have the same first dimension, "
            f"got logits shape {shape_text(features.shape)} and labels shape {shape_text(labels.shape)}"
        )
    classes = features.shape[1]
    if classes == 0:
        raise InvalidArgumentError(f"Must have at least one class, but got logits shape {shape_text(features.shape)}")
    # Of unsigned numbers the negative ones are the largest.
    if np.maximum.reduce(labels.view(f"u{labels.itemsize}"), initial=0) >= classes:
        outside = (labels < 0) | (labels >= classes)
        raise InvalidArgumentError(
            f"Received a label value of {labels[outside][0]} which is outside the valid range of [0, {classes}).  "
            f"Label values: {' '.join(map(str, labels))}"
        )


@kernel("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(node: Construction) -> Kernel:
    """Per row -log softmax(features)[label], and its gradient with respect to the features."""
    return in_float32(_sparse_cross_entropy, node.output_types[0])
