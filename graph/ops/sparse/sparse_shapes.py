"""Shape functions of the ops on sparse tensors and on sparse segments.

The number of elements of a sparse result is usually unknown before the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integer, integers, length, shape_from
from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, unknown, with_rank, with_rank_at_least
from ...dtypes import Shape


@shape_fn("SparseToDense")
def sparse_to_dense(c: ShapeContext) -> Sequence[Shape]:
    """The shape given as a value."""
    return (shape_from(c, 1),)


@shape_fn("SparseTensorDenseMatMul")
def sparse_tensor_dense_mat_mul(c: ShapeContext) -> Sequence[Shape]:
    """Rows of the sparse matrix by columns of the dense one, after transposition."""
    with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 1)
    a, b = with_rank(shape_from(c, 2), 2), with_rank(c.inputs[3], 2)
    rows, inner = a[::-1] if c.attrs["adjoint_a"] else a
    outer, columns = b[::-1] if c.attrs["adjoint_b"] else b
    merge_dims(inner, outer)
    return ((rows, columns),)


@shape_fn("SparseReduceSum", "SparseReduceMax")
def sparse_reduce_sum(c: ShapeContext) -> Sequence[Shape]:
    """The shape without the reduced axes, or with ones in their place."""
    sizes, axes = shape_from(c, 2), integers(c, 3)
    if sizes is None or axes is None or c.constant(2) is None:
        return (None,)
    rank = len(sizes)
    if any(not -rank <= axis < rank for axis in axes):
        raise InvalidArgumentError(f"Invalid reduction dimension in {axes}, for input with {rank} dimensions.")
    dropped = {axis % rank for axis in axes}
    if c.attrs["keep_dims"]:
        return (tuple(1 if i in dropped else size for i, size in enumerate(sizes)),)
    return (tuple(size for i, size in enumerate(sizes) if i not in dropped),)


@shape_fn("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
def sparse_dense_product(c: ShapeContext) -> Sequence[Shape]:
    """As many values as there are tuples."""
    return ((merge_dims(with_rank(c.inputs[0], 2)[0], length(c, 1)),),)


@shape_fn("SparseSoftmax")
def new_values(c: ShapeContext) -> Sequence[Shape]:
    """As many values as the input has."""
    with_rank(c.inputs[0], 2)
    return (with_rank(c.inputs[1], 1),)


@shape_fn("SparseReorder")
def sparse_reorder(c: ShapeContext) -> Sequence[Shape]:
    """As many index tuples and values as the input has."""
    return (with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 1))


@shape_fn("SparseAdd")
def sparse_add(c: ShapeContext) -> Sequence[Shape]:
    """An unknown number of elements, of the same rank."""
    rank = length(c, 2)
    return ((None, rank), (None,), (rank,))


@shape_fn("SparseReshape")
def sparse_reshape(c: ShapeContext) -> Sequence[Shape]:
    """As many index tuples as the input has, as long as the new shape."""
    rank = length(c, 2)
    return ((with_rank(c.inputs[0], 2)[0], rank), (rank,))


@shape_fn("SparseSlice")
def sparse_slice(c: ShapeContext) -> Sequence[Shape]:
    """An unknown number of elements, of the same rank."""
    rank = length(c, 2)
    return ((None, rank), (None,), (rank,))


@shape_fn("SparseAddGrad")
def sparse_add_grad(c: ShapeContext) -> Sequence[Shape]:
    """As many values as each term has tuples."""
    return tuple((with_rank(c.inputs[port], 2)[0],) for port in (1, 2))


@shape_fn("SparseSliceGrad")
def sparse_slice_grad(c: ShapeContext) -> Sequence[Shape]:
    """As many values as there are tuples."""
    return ((with_rank(c.inputs[1], 2)[0],),)


@shape_fn("SparseConcat")
def sparse_concat(c: ShapeContext) -> Sequence[Shape]:
    """The elements of all inputs together."""
    count = c.attrs["N"]
    total: int | None = 0
    width: int | None = None
    rank: int | None = None
    for i in range(count):
        rows, columns = with_rank(c.inputs[i], 2)
        rows = merge_dims(rows, length(c, count + i))
        width, rank = merge_dims(width, columns), merge_dims(rank, length(c, 2 * count + i))
        total = None if total is None or rows is None else total + rows
    return ((total, width), (total,), (rank,))


@shape_fn("SparseSplit")
def sparse_split(c: ShapeContext) -> Sequence[Shape]:
    """An unknown number of elements in each part."""
    count = int(c.attrs["num_split"])
    rank = c.inputs[3][0] if c.inputs[3] is not None and len(c.inputs[3]) == 1 else None  # checked in the run
    return (*((None, rank),) * count, *((None,),) * count, *((rank,),) * count)


@shape_fn("SparseFillEmptyRows")
def sparse_fill_empty_rows(c: ShapeContext) -> Sequence[Shape]:
    """An unknown number of elements; a flag for each row; a position for each old element."""
    rows, rank = with_rank(c.inputs[0], 2)
    sizes = shape_from(c, 2)
    rank = merge_dims(rank, length(c, 2))
    rows = merge_dims(rows, length(c, 1))
    return ((None, rank), (None,), (sizes[0] if sizes else None,), (rows,))


@shape_fn("SparseFillEmptyRowsGrad")
def sparse_fill_empty_rows_grad(c: ShapeContext) -> Sequence[Shape]:
    """A gradient for each old element, and one for the default."""
    with_rank(c.inputs[1], 1)
    return (with_rank(c.inputs[0], 1), ())


def _segments(c: ShapeContext, rows: int | None) -> Sequence[Shape]:
    data = with_rank_at_least(c.inputs[0], 1)
    merge_dims(length(c, 1), length(c, 2))
    return (None if data is None else (rows, *data[1:]),)


@shape_fn("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
def sparse_segment(c: ShapeContext) -> Sequence[Shape]:
    """One row for each segment; their number is known only in the run."""
    return _segments(c, None)


@shape_fn(
    "SparseSegmentSumWithNumSegments",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments",
    "SparseSegmentSumGrad",
    "SparseSegmentMeanGrad",
    "SparseSegmentSqrtNGrad",
)
def sparse_segment_sized(c: ShapeContext) -> Sequence[Shape]:
    """The requested number of rows."""
    with_rank(c.inputs[3], 0)
    return _segments(c, integer(c, 3))


@shape_fn("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
def sparse_segment_grad_of_used_rows(c: ShapeContext) -> Sequence[Shape]:
    """As many rows as there are different indices, and their numbers."""
    with_rank(c.inputs[3], 0)
    return (*_segments(c, None), (None,))


shape_fn("SparseReduceSumSparse", "SparseReduceMaxSparse")(unknown)


@shape_fn("SparseTensorDenseAdd")
def sparse_tensor_dense_add(c: ShapeContext) -> Sequence[Shape]:
    """That of the dense tensor."""
    return (c.inputs[3],)


@shape_fn("SparseSparseMaximum", "SparseSparseMinimum")
def sparse_sparse(c: ShapeContext) -> Sequence[Shape]:
    """As many tuples as there are in both together."""
    with_rank(c.inputs[0], 2)
    return ((None, None), (None,))


@shape_fn("SparseCross", "SparseCrossV2", "SparseCrossHashed")
def sparse_cross(_: ShapeContext) -> Sequence[Shape]:
    """A sparse matrix."""
    return ((None, 2), (None,), (2,))


@shape_fn("SerializeSparse")
def serialize_sparse(c: ShapeContext) -> Sequence[Shape]:
    """Indices, values and shape."""
    for x, rank in zip(c.inputs, (2, 1, 1), strict=True):
        with_rank(x, rank)
    return ((3,),)


@shape_fn("SerializeManySparse")
def serialize_many_sparse(c: ShapeContext) -> Sequence[Shape]:
    """Indices, values and shape of each row."""
    for x, rank in zip(c.inputs, (2, 1, 1), strict=True):
        with_rank(x, rank)
    return ((None, 3),)


@shape_fn("DeserializeSparse", "DeserializeManySparse")
def deserialize_sparse(c: ShapeContext) -> Sequence[Shape]:
    """The rank is in the run's tensors."""
    rows = with_rank(c.inputs[0], 2) if c.op == "DeserializeManySparse" else with_rank_at_least(c.inputs[0], 1)
    merge_dims(None if rows is None else rows[-1], 3)
    return ((None, None), (None,), (None,))


@shape_fn("AddSparseToTensorsMap")
def add_sparse(c: ShapeContext) -> Sequence[Shape]:
    """A number."""
    with_rank(c.inputs[0], 2)
    with_rank(c.inputs[1], 1)
    with_rank(c.inputs[2], 1)
    return ((),)


@shape_fn("AddManySparseToTensorsMap")
def add_many_sparse(c: ShapeContext) -> Sequence[Shape]:
    """A number for each row."""
    add_sparse(c)
    return ((None,),)


@shape_fn("TakeManySparseFromTensorsMap")
def take_many_sparse(c: ShapeContext) -> Sequence[Shape]:
    """The rank is that of the tensors in the map."""
    with_rank(c.inputs[0], 1)
    return ((None, None), (None,), (None,))


@shape_fn("RaggedCross")
def ragged_cross(c: ShapeContext) -> Sequence[Shape]:
    """As many rows as each input has."""
    ragged, sparse = len(c.attrs["ragged_values_types"]), c.attrs["Nsparse"]
    splits = [length(c, i) for i in range(ragged, 2 * ragged)]
    dense = [with_rank(x, 2)[0] for x in c.inputs[2 * ragged + 3 * sparse :]]
    known = [size for size in (*splits, *(None if rows is None else rows + 1 for rows in dense)) if size is not None]
    return ((None,), (known[0] if known else None,))
