"""Gradients of matrix products z = a b: g b^H and a^H g (Giles 2008, section 2.2.2).

Either factor may be transposed; batches are summed along the axes that one of them was stretched along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate, reshape_like, shape_of, span
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def matmul(op: Forward, a: Tensor, b: Tensor, *, adj_a: bool = False, adj_b: bool = False) -> Tensor:
    """The product of (batches of) matrices, either of them transposed and conjugated first."""
    return op.make("BatchMatMulV2", a, b, adj_x=adj_a, adj_y=adj_b)


@gradient("MatMul")
def matrix_product(op: Forward, grad: Tensor) -> Gradients:
    """d a = g b^H, d b = a^H g, rearranged for transposed factors, by the op that the product is of."""
    a, b = (op.attrs[name] for name in ("transpose_a", "transpose_b"))

    def product(x: Tensor, y: Tensor, transpose_x: bool, transpose_y: bool) -> Tensor:
        return op.make(op.op, x, y, transpose_a=transpose_x, transpose_b=transpose_y)

    da = db = None
    if op.wants(0):
        y = conjugate(op, op.inputs[1])
        da = product(y, grad, b, True) if a else product(grad, y, False, not b)
    if op.wants(1):
        x = conjugate(op, op.inputs[0])
        db = product(grad, x, True, a) if b else product(x, grad, not a, False)
    return da, db


@gradient("SparseMatMul")
def mostly_zero_product(op: Forward, grad: Tensor) -> Gradients:
    """As MatMul, in float32, then cast to the type of the factor."""
    a, b = (op.attrs[name] for name in ("transpose_a", "transpose_b"))
    x, y = (op.make("Cast", tensor, DstT=DataType.FLOAT) for tensor in op.inputs)
    if a:
        da = op.make("MatMul", y, grad, transpose_a=b, transpose_b=True)
    else:
        da = op.make("MatMul", grad, y, transpose_b=not b)
    if b:
        db = op.make("MatMul", grad, x, transpose_a=True, transpose_b=a)
    else:
        db = op.make("MatMul", x, grad, transpose_a=not a)
    return tuple(op.make("Cast", d, DstT=dtype) for d, dtype in zip((da, db), op.input_types, strict=True))


@gradient("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_product(op: Forward, grad: Tensor) -> Gradients:
    """d a = g b^H, d b = a^H g, rearranged for adjoint factors and summed over stretched batches."""
    a, b = op.attrs["adj_x"], op.attrs["adj_y"]
    da = db = None
    if op.wants(0):
        y = op.inputs[1]
        da = matmul(op, y, grad, adj_a=b, adj_b=True) if a else matmul(op, grad, y, adj_b=not b)
        da = unstretch_batch(op, da, 0)
    if op.wants(1):
        x = op.inputs[0]
        db = matmul(op, grad, x, adj_a=True, adj_b=a) if b else matmul(op, x, grad, adj_a=not a)
        db = unstretch_batch(op, db, 1)
    return da, db


def unstretch_batch(op: Forward, grad: Tensor, port: int) -> Tensor:
    """Sums `grad` over the axes before the last two along which input `port` was stretched."""
    sizes, other = op.input_sizes(port), op.input_sizes(1 - port)
    if isinstance(sizes, tuple) and isinstance(other, tuple) and sizes[:-2] == other[:-2]:
        return grad
    shapes = [span(op, shape, 0, -2) for shape in (shape_of(op, port), shape_of(op, 1 - port))]
    axes = op.make("BroadcastGradientArgs", *shapes)
    return reshape_like(op, op.make("Sum", grad, axes), port)
