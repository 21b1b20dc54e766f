"""Shape functions of ragged tensors; the number of values is known only in a run."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import length, partly, shape_from
from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    num_elements,
    shape_fn,
    with_rank,
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


@shape_fn("RaggedFillEmptyRows")
def ragged_fill_empty_rows(c: ShapeContext) -> Sequence[Shape]:
    """A place for each value that there was."""
    (count,) = with_rank(c.inputs[0], 1)
    merge_dims(count, with_rank(c.inputs[1], 1)[0])
    with_rank(c.inputs[2], 0), with_rank(c.inputs[3], 0)
    return ((None,), (None,), (None,), (count,))


@shape_fn("RaggedFillEmptyRowsGrad")
def ragged_fill_empty_rows_grad(c: ShapeContext) -> Sequence[Shape]:
    """A gradient for each value, and one for the default."""
    return (with_rank(c.inputs[0], 1), ())


@shape_fn("RaggedTensorToSparse")
def ragged_tensor_to_sparse(c: ShapeContext) -> Sequence[Shape]:
    """All axes, ragged or not, are axes of the sparse tensor."""
    values = c.inputs[-1]
    if values is None:
        return ((None, None), (None,), (None,))
    rank, count = c.attrs["RAGGED_RANK"] + len(values), num_elements(values)
    return ((count, rank), (count,), (rank,))


@shape_fn("RaggedGather")
def ragged_gather(c: ShapeContext) -> Sequence[Shape]:
    """Splits of the axes of the indices and of those of the rows; the values keep their inner sizes."""
    count, values = c.attrs["OUTPUT_RAGGED_RANK"], c.inputs[-2]
    with_rank(c.inputs[-1], count - c.attrs["PARAMS_RAGGED_RANK"] + 1)
    return (*[(None,)] * count, None if values is None else (None, *values[1:]))


@shape_fn("RaggedCross")
def ragged_cross(c: ShapeContext) -> Sequence[Shape]:
    """As many rows as each input has."""
    ragged, sparse = len(c.attrs["ragged_values_types"]), c.attrs["Nsparse"]
    splits = [length(c, i) for i in range(ragged, 2 * ragged)]
    dense = [with_rank(x, 2)[0] for x in c.inputs[2 * ragged + 3 * sparse :]]
    known = [size for size in (*splits, *(None if rows is None else rows + 1 for rows in dense)) if size is not None]
    return ((None,), (known[0] if known else None,))


@shape_fn("RaggedTensorToVariant")
def ragged_tensor_to_variant(c: ShapeContext) -> Sequence[Shape]:
    """A variant for each row, or one."""
    if not c.attrs["batched_input"]:
        return ((),)
    if c.attrs["RAGGED_RANK"]:
        (splits,) = with_rank(c.inputs[0], 1)
        return ((None if splits is None else splits - 1,),)
    values = with_rank_at_least(c.inputs[0], 1)
    return ((None if values is None else values[0],),)


@shape_fn("RaggedTensorFromVariant")
def ragged_tensor_from_variant(c: ShapeContext) -> Sequence[Shape]:
    """The axes of the variants become ragged ones."""
    inner, rank = c.attrs["input_ragged_rank"], c.attrs["output_ragged_rank"]
    if inner != -1:
        with_rank(c.inputs[0], rank - inner)
    return (*[(None,)] * rank, None)


@shape_fn("RaggedTensorToVariantGradient")
def ragged_tensor_to_variant_gradient(c: ShapeContext) -> Sequence[Shape]:
    """That of the values."""
    return (shape_from(c, 2),)
