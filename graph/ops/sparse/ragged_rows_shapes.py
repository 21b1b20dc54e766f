"""Shape functions of ops on the rows of ragged tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge_dims, num_elements, shape_fn, with_rank
from ...dtypes import Shape


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
