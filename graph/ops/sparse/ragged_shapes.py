"""Shape functions of ragged tensors; the number of values is known only in a run."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import length, partly
from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    shape_fn,
    with_rank_at_least,
)
from ...dtypes import Shape


@shape_fn("RaggedRange")
def ragged_range(c: ShapeContext) -> Sequence[Shape]:
    """One split more than there are ranges; three scalars make one range."""
    count: int | None = 1 if all(x == () for x in c.inputs) else None
    for x in c.inputs:
        if x is not None and len(x) > 1:
            raise InvalidArgumentError(f"Shape must be at most rank 1 but is rank {len(x)}")
        count = merge_dims(count, x[0]) if x else count
    return ((None if count is None else count + 1,), (None,))


@shape_fn("RaggedTensorToTensor")
def ragged_tensor_to_tensor(c: ShapeContext) -> Sequence[Shape]:
    """The requested sizes; the inner ones are those of the values."""
    kinds, sizes = c.attrs["row_partition_types"], partly(c, 0)
    values = with_rank_at_least(c.inputs[1], 1)
    levels = len(kinds) - (kinds[:1] == (b"FIRST_DIM_SIZE",)) + 1
    natural = None if values is None else (None,) * levels + values[1:]
    if c.inputs[0] == () or (sizes is None and c.inputs[0] in (None, (None,))):
        return (natural,)
    if sizes is None:
        sizes = [-1] * (length(c, 0) or 0)
    asked = tuple(None if size == -1 else size for size in sizes)
    return (merge(asked, natural),)
