"""Shapes of softmax and of the cross entropies.

Flows in: shapes of logits and labels. Flows out: that of the logits; for a loss one number per row. Always holds: a
gradient has the shape of the logits it is for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import (
    ShapeContext,
    broadcast,
    merge,
    merge_dims,
    shape_fn,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape


@shape_fn("Softmax", "LogSoftmax")
def softmax(c: ShapeContext) -> Sequence[Shape]:
    """That of the logits, at least a vector."""
    return (with_rank_at_least(c.inputs[0], 1),)


@shape_fn("SoftmaxCrossEntropyWithLogits")
def cross_entropy(c: ShapeContext) -> Sequence[Shape]:
    """[rows], [rows, classes] of logits and labels: of one shape if they can be, else broadcast."""
    a, b = c.inputs
    try:
        joint = merge(a, b)
    except InvalidArgumentError:
        joint = broadcast(a, b)
    sizes = with_rank(joint, 2)
    return ((sizes[0],), sizes)


@shape_fn("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(c: ShapeContext) -> Sequence[Shape]:
    """[rows], [rows, classes]; the rows also known from the labels."""
    features, (labels,) = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 1)
    rows = merge_dims(features[0], labels)
    return ((rows,), (rows, features[1]))
