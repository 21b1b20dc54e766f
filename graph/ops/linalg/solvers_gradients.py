"""Gradients of solvers of a x = b: d b = a^-H g, d a = -d b x^H (Giles 2008, section 2.3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import UnimplementedError
from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...dtypes import DataType
from .linalg_gradients import band
from .matmul_gradients import matmul, unstretch_batch

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("MatrixSolve")
def solve(op: Forward, grad: Tensor) -> Gradients:
    """d b = a^-H g, d a = -d b x^H; likewise for the adjoint of a."""
    a, adjoined = op.inputs[0], op.attrs["adjoint"]
    db = op.make("MatrixSolve", a, grad, adjoint=not adjoined)
    return -_outer(op, db, op.outputs[0], adjoined), db


def _outer(op: Forward, db: Tensor, x: Tensor, adjoined: bool) -> Tensor:
    return matmul(op, x, db, adj_b=True) if adjoined else matmul(op, db, x, adj_b=True)


@gradient("MatrixTriangularSolve")
def triangular_solve(op: Forward, grad: Tensor) -> Gradients:
    """As MatrixSolve, for the triangle that is read."""
    a, lower, adjoined = op.inputs[0], op.attrs["lower"], op.attrs["adjoint"]
    db = op.make("MatrixTriangularSolve", a, grad, lower=lower, adjoint=not adjoined)
    da = band(op, -_outer(op, db, op.outputs[0], adjoined), -1 if lower else 0, 0 if lower else -1)
    return unstretch_batch(op, da, 0), unstretch_batch(op, db, 1)


@gradient("BandedTriangularSolve")
def banded_solve(op: Forward, grad: Tensor) -> Gradients:
    """As MatrixSolve, for the bands, which are stored as rows."""
    bands, lower, adjoined = op.inputs[0], op.attrs["lower"], op.attrs["adjoint"]
    db = op.make("BandedTriangularSolve", bands, grad, lower=lower, adjoint=not adjoined)
    da = -_outer(op, db, op.outputs[0], adjoined)
    sizes = op.input_sizes(0)
    if isinstance(sizes, tuple) and sizes[-2] > 0:
        last = op.g.constant(sizes[-2] - 1, DataType.INT32)
    else:
        last = op.make("StridedSlice", op.make("Shape", bands), [-2], [-1], [1], shrink_axis_mask=1) - 1
    zero = op.g.constant(0, DataType.INT32)
    k = op.make("Pack", [-last, zero] if lower else [zero, last])
    nothing = op.g.constant(0, grad.dtype)
    da = op.make("MatrixDiagPartV3", da, k, nothing, align="LEFT_RIGHT")
    return unstretch_batch(op, da, 0), unstretch_batch(op, db, 1)


@gradient("MatrixSolveLs")
def least_squares(op: Forward, grad: Tensor) -> Gradients:
    """With k = a^H a + lambda I for tall, a a^H + lambda I for wide a.

    Tall: x = k^-1 a^H b, z = k^-1 g, d b = a z, d a = b z^H - a (x z^H + z x^H). Wide: w = k^-1 b, x = a^H w, d b = v =
    k^-1 a g, d a = w g^H - (v w^H + w v^H) a. Raises UnimplementedError unless `fast` and the sizes are known.
    """
    sizes = op.input_sizes(0)
    if not op.attrs["fast"]:
        raise UnimplementedError(f"{op.name!r}: least squares have a gradient with fast=True only", node=op.name)
    if not isinstance(sizes, tuple) or min(sizes[-2:]) < 0:
        raise UnimplementedError(f"{op.name!r}: rows and columns have to be known; fix their sizes", node=op.name)
    a, b, penalty = op.inputs
    tall = sizes[-2] >= sizes[-1]
    square = matmul(op, a, a, adj_a=tall, adj_b=not tall)
    ones = op.g.constant([1] * min(sizes[-2:]), grad.dtype)
    k = square + op.make("Cast", penalty, DstT=grad.dtype) * op.make("MatrixDiag", ones)
    if tall:
        x, z = op.outputs[0], op.make("MatrixSolve", k, grad)
        return matmul(op, b, z, adj_b=True) - matmul(op, a, _both(op, x, z)), matmul(op, a, z), None
    w, v = op.make("MatrixSolve", k, b), op.make("MatrixSolve", k, matmul(op, a, grad))
    return matmul(op, w, grad, adj_b=True) - matmul(op, _both(op, v, w), a), v, None


def _both(op: Forward, x: Tensor, y: Tensor) -> Tensor:
    return matmul(op, x, y, adj_b=True) + matmul(op, y, x, adj_b=True)
