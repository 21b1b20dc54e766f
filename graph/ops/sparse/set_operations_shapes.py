"""Shape functions of set operations and the edit distance."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integers, length
from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    shape_fn,
    unknown,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape


@shape_fn("DenseToDenseSetOperation")
def dense_set_operation(c: ShapeContext) -> Sequence[Shape]:
    """A sparse tensor of the inputs' rank; their leading sizes must agree."""
    a, b = (with_rank_at_least(x, 2) for x in c.inputs)
    rank = len(a) if a is not None else None if b is None else len(b)
    if a is not None and b is not None:
        merge(a[:-1], with_rank(b, len(a))[:-1])
    return ((None, rank), (None,), (rank,))


shape_fn("SetSize")(unknown)


@shape_fn("DenseToSparseSetOperation")
def dense_to_sparse(c: ShapeContext) -> Sequence[Shape]:
    """A sparse tensor of the inputs' rank."""
    dense = with_rank_at_least(c.inputs[0], 2)
    rank = merge_dims(None if dense is None else len(dense), length(c, 3))
    return ((None, rank), (None,), (rank,))


@shape_fn("SparseToSparseSetOperation")
def sparse_to_sparse(c: ShapeContext) -> Sequence[Shape]:
    """A sparse tensor of the inputs' rank."""
    rank = merge_dims(length(c, 2), length(c, 5))
    return ((None, rank), (None,), (rank,))


@shape_fn("EditDistance")
def edit_distance(c: ShapeContext) -> Sequence[Shape]:
    """The larger of both shapes without the last axis; unknown unless both are known."""
    for i, rank in enumerate((2, 1, 1, 2, 1, 1)):
        with_rank(c.inputs[i], rank)
    hypothesis, truth = integers(c, 2), integers(c, 5)
    if hypothesis is None or truth is None:
        return (None,)
    if len(hypothesis) < 2:
        raise InvalidArgumentError(
            f"Input Hypothesis SparseTensors must have rank at least 2, but hypothesis_shape rank is: {len(hypothesis)}"
        )
    if len(hypothesis) != len(truth):
        raise InvalidArgumentError(
            f"Num elements of hypothesis_shape does not match truth_shape: {hypothesis}, {truth}"
        )
    return (tuple(map(max, hypothesis[:-1], truth[:-1])),)
