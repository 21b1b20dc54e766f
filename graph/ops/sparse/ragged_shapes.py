"""Shape functions of ragged tensors, of sets of rows, and of the edit distance.

Flows in: shapes and, where known, the sizes asked for. Flows out: one shape per output. Always holds: how many values
there are is known only in a run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integers, length, partly
from ...analysis.shape_functions import ShapeContext, merge, merge_dims, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape


@shape_fn("RaggedRange")
def ragged_range(c: ShapeContext) -> Sequence[Shape]:
    """One split more than there are ranges; scalars alone make one range."""
    count: int | None = 1 if all(x == () for x in c.inputs) else None
    for x in c.inputs:
        if x is not None and len(x) > 1:
            raise InvalidArgumentError(f"Shape must be at most rank 1 but is rank {len(x)}")
        count = merge_dims(count, x[0]) if x else count
    return ((None if count is None else count + 1,), (None,))


@shape_fn("RaggedTensorToTensor")
def ragged_tensor_to_tensor(c: ShapeContext) -> Sequence[Shape]:
    """The sizes asked for; the inner ones are those of the values."""
    kinds, wanted = c.attrs["row_partition_types"], partly(c, 0)
    values = with_rank_at_least(c.inputs[1], 1)
    levels = len(kinds) - (kinds[:1] == (b"FIRST_DIM_SIZE",)) + 1
    natural = None if values is None else (None,) * levels + values[1:]
    if c.inputs[0] == () or (wanted is None and c.inputs[0] in (None, (None,))):
        return (natural,)
    if wanted is None:
        wanted = [-1] * (length(c, 0) or 0)
    given = tuple(None if size == -1 else size for size in wanted)
    return (merge(given, natural),)


@shape_fn("DenseToDenseSetOperation")
def dense_set_operation(c: ShapeContext) -> Sequence[Shape]:
    """A sparse tensor of the rank of the inputs, whose leading sizes must agree."""
    a, b = (with_rank_at_least(x, 2) for x in c.inputs)
    rank = len(a) if a is not None else None if b is None else len(b)
    if a is not None and b is not None:
        merge(a[:-1], with_rank(b, len(a))[:-1])
    return ((None, rank), (None,), (rank,))


@shape_fn("EditDistance")
def edit_distance(c: ShapeContext) -> Sequence[Shape]:
    """The larger of both shapes without the last axis, known where both shapes are."""
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
