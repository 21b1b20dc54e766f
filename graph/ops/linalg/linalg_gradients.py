"""Gradients of inverses, determinants and square roots of matrices.

Formulas: Giles, "Collected matrix derivative results" (2008). Matrices are the last two axes; H is the adjoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate
from ...dtypes import DataType
from .matmul_gradients import matmul

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def adjoint(op: Forward, x: Tensor) -> Tensor:
    """The conjugate transpose of each matrix, by one node: a product with the identity would cost more."""
    rank = op.make("Rank", x)
    order = op.make("ConcatV2", [op.make("Range", 0, rank - 2, 1), op.make("Pack", [rank - 1, rank - 2])], 0)
    return op.make("ConjugateTranspose", x, order)


def transpose(op: Forward, x: Tensor) -> Tensor:
    return conjugate(op, adjoint(op, x))


def band(op: Forward, x: Tensor, lower: int, upper: int) -> Tensor:
    """The entries at most that many diagonals below and above the main one; -1 for all."""
    return op.make("MatrixBandPart", x, op.g.constant(lower, DataType.INT64), op.g.constant(upper, DataType.INT64))


def as_matrix(op: Forward, per_batch: Tensor) -> Tensor:
    """One number per matrix, with two axes of size 1."""
    last = op.g.constant(-1, DataType.INT32)
    return op.make("ExpandDims", op.make("ExpandDims", per_batch, last), last)


@gradient("MatrixInverse")
def inverse(op: Forward, grad: Tensor) -> Gradients:
    """d x = -y^H g y^H; of the adjoint's inverse -y g^H y."""
    y, swap = op.outputs[0], not op.attrs["adjoint"]
    return (-matmul(op, y, matmul(op, grad, y, adj_a=not swap, adj_b=swap), adj_a=swap),)


@gradient("MatrixDeterminant")
def determinant(op: Forward, grad: Tensor) -> Gradients:
    """d x = g conj(det) x^-H."""
    scale = as_matrix(op, grad * conjugate(op, op.outputs[0]))
    return (scale * op.make("MatrixInverse", op.inputs[0], adjoint=True),)


@gradient("LogMatrixDeterminant")
def log_determinant(op: Forward, _of_sign: Tensor, grad: Tensor) -> Gradients:
    """d x = g x^-H; the sign is constant."""
    return (as_matrix(op, grad) * op.make("MatrixInverse", op.inputs[0], adjoint=True),)


@gradient("MatrixSquareRoot")
def square_root(op: Forward, grad: Tensor) -> Gradients:
    """The z of y^H z + z y^H = g, as n^2 linear equations: (y^H (x) I + I (x) conj(y)) z = g, z row by row."""
    y = op.outputs[0]
    last = op.g.constant(-1, DataType.INT32)
    eye = op.make("MatrixDiag", op.make("OnesLike", op.make("MatrixDiagPart", y)))
    shape = op.make("Shape", y)
    size = op.make("StridedSlice", shape, [-1], [0], [1], end_mask=1)
    outer = op.make("StridedSlice", shape, [0], [-2], [1])
    square = size * size

    def kronecker(p: Tensor, q: Tensor) -> Tensor:
        """p[i, k] q[j, l] at row (i, j), column (k, l)."""
        left = op.make("ExpandDims", op.make("ExpandDims", p, last), op.g.constant(-3, DataType.INT32))
        right = op.make(
            "ExpandDims", op.make("ExpandDims", q, op.g.constant(-2, DataType.INT32)), op.g.constant(-4, DataType.INT32)
        )
        return op.make("Reshape", left * right, op.make("ConcatV2", [outer, square, square], 0))

    equations = kronecker(adjoint(op, y), eye) + kronecker(eye, conjugate(op, y))
    column = op.make("Reshape", grad, op.make("ConcatV2", [outer, square, op.g.constant([1], DataType.INT32)], 0))
    return (op.make("Reshape", op.make("MatrixSolve", equations, column), shape),)
