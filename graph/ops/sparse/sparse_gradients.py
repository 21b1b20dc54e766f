"""Gradients of ops on sparse tensors, given as indices, values and shape; indices and shapes get none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate, shape_of
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("SparseReorder")
def reorder(op: Forward, _indices: None, grad: Tensor) -> Gradients:
    """The gradient of each value, found by reordering the values' numbers."""
    indices, values, shape = op.inputs
    numbers = op.make("Range", 0, op.make("Size", values), 1)
    _, order = op.make_all("SparseReorder", indices, numbers, shape)
    back = op.make("InvertPermutation", order)
    return None, op.make("GatherV2", grad, back, op.g.constant(0, DataType.INT32)), None


@gradient("SparseToDense")
def to_dense(op: Forward, grad: Tensor) -> Gradients:
    """Each value gets the gradient of its element, the default gets the rest."""
    indices = op.inputs[0]
    gathered = op.make("GatherNd", grad, indices)
    remainder = _sum(op, grad) - _sum(op, gathered)
    shape = shape_of(op, 2)  # one value may serve for all
    stretched = op.make("BroadcastGradientArgs", shape, op.make("Shape", gathered))
    return None, None, op.make("Reshape", op.make("Sum", gathered, stretched), shape), remainder


def _sum(op: Forward, tensor: Tensor) -> Tensor:
    return op.make("Sum", op.make("Reshape", tensor, [-1]), op.g.constant(0, DataType.INT32))


@gradient("SparseAdd")
def add(op: Forward, _indices: None, grad: Tensor, _shape: None) -> Gradients:
    """Calls the op that computes this gradient."""
    a, b = op.inputs[0], op.inputs[3]
    to_a, to_b = op.make_all("SparseAddGrad", grad, a, b, op.outputs[0])
    return None, to_a, None, None, to_b, None, None


@gradient("SparseSlice")
def cut(op: Forward, _indices: None, grad: Tensor, _shape: None) -> Gradients:
    """Calls the op that computes this gradient."""
    indices, _, _, start, _ = op.inputs
    return None, op.make("SparseSliceGrad", grad, indices, start, op.outputs[0]), None, None, None


@gradient("SparseReduceSum")
def reduce_sum(op: Forward, grad: Tensor) -> Gradients:
    """Each value gets the gradient of its sum: at the value's index, with 0 for the reduced axes."""
    indices, _, shape, axes = op.inputs
    rank = op.make("Size", shape)
    named = op.make("Reshape", op.make("FloorMod", axes + rank, rank), [-1])
    ones = op.make("OnesLike", named)
    every = op.make("Range", 0, rank, 1)
    sizes = op.make("Cast", shape, DstT=DataType.INT32)
    reduced_shape = op.make("DynamicStitch", [every, named], [sizes, ones])
    per_size = op.make("Cast", op.make("FloorDiv", sizes, op.make("Maximum", reduced_shape, 1)), DstT=DataType.INT64)
    places = op.make("FloorDiv", indices, per_size)
    return None, op.make("GatherNd", op.make("Reshape", grad, reduced_shape), places), None, None


@gradient("SparseFillEmptyRows", takes_none=True)
def fill_empty_rows(op: Forward, _indices: None, grad: Tensor | None, _empty: None, _map: None) -> Gradients:
    """Calls the op that computes this gradient."""
    if grad is None:
        return [None] * 4
    to_values, to_default = op.make_all("SparseFillEmptyRowsGrad", op.outputs[3], grad)
    return None, to_values, None, to_default


def _dense_at(op: Forward) -> tuple[Tensor, Tensor]:
    """The elements of the dense input, which may broadcast, at the places of the values; and these places."""
    indices, _, shape, dense = op.inputs
    own = op.make("Shape", dense, out_type=DataType.INT64)
    missing = op.make("Size", shape) - op.make("Size", own)
    ones = op.make("Fill", op.make("Reshape", missing, [1]), op.g.constant(1, DataType.INT64))
    aligned = op.make("ConcatV2", [ones, own], 0)
    places = op.make("FloorDiv", indices, op.make("FloorDiv", shape, aligned))
    first = op.make("Pack", [op.g.constant(0, DataType.INT32), missing])
    places = op.make("Slice", places, first, [-1, -1])
    return op.make("GatherNd", dense, places), places


@gradient("SparseDenseCwiseMul")
def times_dense(op: Forward, grad: Tensor) -> Gradients:
    """As Mul, at the places of the values."""
    values = op.inputs[1]
    met, places = _dense_at(op)
    shape = op.make("Shape", op.inputs[3], out_type=DataType.INT64)
    return None, grad * met, None, op.make("ScatterNd", places, grad * values, shape)


@gradient("SparseDenseCwiseDiv")
def over_dense(op: Forward, grad: Tensor) -> Gradients:
    """As RealDiv, at the places of the values."""
    values = op.inputs[1]
    met, places = _dense_at(op)
    shape = op.make("Shape", op.inputs[3], out_type=DataType.INT64)
    return None, grad / met, None, op.make("ScatterNd", places, grad * (-values / met / met), shape)


@gradient("SparseTensorDenseAdd")
def plus_sparse(op: Forward, grad: Tensor) -> Gradients:
    """The values get the gradient at their indices."""
    return None, op.make("GatherNd", grad, op.inputs[0]), None, grad


@gradient("SparseTensorDenseMatMul")
def sparse_dense_product(op: Forward, grad: Tensor) -> Gradients:
    """The value a[i, j] gets the sum over k of g[i, k] conj(b[j, k]), b gets a^H g."""
    indices, values, shape, b = op.inputs
    a_adjoint, b_adjoint = op.attrs["adjoint_a"], op.attrs["adjoint_b"]
    db = op.make("SparseTensorDenseMatMul", indices, values, shape, grad, adjoint_a=not a_adjoint)
    columns = op.make("ConjugateTranspose", b, [1, 0]) if b_adjoint else b
    if b_adjoint:
        db = op.make("ConjugateTranspose", db, [1, 0])
    row, column = op.make_all("Unpack", indices, num=2, axis=1)
    if a_adjoint:
        row, column = column, row
    zero = op.g.constant(0, DataType.INT32)
    rows = op.make("GatherV2", grad, row, zero)
    products = rows * conjugate(op, op.make("GatherV2", columns, column, zero))
    dvalues = op.make("Sum", products, op.g.constant(1, DataType.INT32))
    return None, conjugate(op, dvalues) if a_adjoint else dvalues, None, db


@gradient("SparseSoftmax")
def sparse_softmax(op: Forward, grad: Tensor) -> Gradients:
    """As Softmax, with sums over the values that are present."""
    indices, _, shape = op.inputs
    p = op.outputs[0]
    sums = op.make("SparseReduceSum", indices, grad * p, shape, op.g.constant([-1], DataType.INT32))
    bounds = [op.g.constant(pair, DataType.INT32) for pair in ([0, 0], [0, -1], [1, 1])]
    rows = op.make("StridedSlice", indices, *bounds, begin_mask=3, end_mask=1)
    return None, p * (grad - op.make("GatherNd", sums, rows)), None
