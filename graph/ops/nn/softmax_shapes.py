"""Shape functions of softmax and of the cross entropies: the shape of the logits; for a loss one number per row."""

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
    return (with_rank_at_least(c.inputs[0], 1),)


@shape_fn("SoftmaxCrossEntropyWithLogits")
def cross_entropy(c: ShapeContext) -> Sequence[Shape]:
    """[rows], [rows, classes]: logits and labels have one shape, or else broadcast."""
    a, b = c.inputs
    try:
        joint = merge(a, b)
    except InvalidArgumentError:
        joint = broadcast(a, b)
    sizes = with_rank(joint, 2)
    return ((sizes[0],), sizes)


@shape_fn("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(c: ShapeContext) -> Sequence[Shape]:
    """[rows], [rows, classes]; the number of rows may also be known from the labels."""
    features, (labels,) = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 1)
    rows = merge_dims(features[0], labels)
    return ((rows,), (rows, features[1]))
