"""Shape functions of the ops that count values in rows."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.dims import integer, integers, length
from ...analysis.shape_functions import ShapeContext, shape_fn, unknown
from ...dtypes import Shape


@shape_fn("DenseCountSparseOutput")
def dense_count(c: ShapeContext) -> Sequence[Shape]:
    """A sparse tensor of the input's rank."""
    rank = None if c.inputs[0] is None else len(c.inputs[0])
    return ((None, rank), (None,), (rank,))


@shape_fn("SparseCountSparseOutput")
def sparse_count(c: ShapeContext) -> Sequence[Shape]:
    """A sparse vector of a vector, a sparse matrix of anything else."""
    rank = length(c, 2)
    rank = None if rank is None else min(rank, 2)
    return ((None, rank), (None,), (rank,))


@shape_fn("RaggedCountSparseOutput")
def ragged_count(c: ShapeContext) -> Sequence[Shape]:
    """A sparse matrix."""
    return ((None, 2), (None,), (2,))


shape_fn("RaggedBincount")(unknown)


@shape_fn("SparseBincount")
def sparse_bincount(c: ShapeContext) -> Sequence[Shape]:
    """The bins of a vector, or of the rows of a matrix."""
    sizes, bins = integers(c, 2), integer(c, 3)
    if sizes is None or bins is None:
        return (None,)
    return ((bins,) if len(sizes) == 1 else (sizes[0], bins),)
