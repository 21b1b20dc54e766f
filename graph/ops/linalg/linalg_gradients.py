"""Gradients of inverses, determinants and solvers of linear equations.

Flows in: what flows back into the result. Formulas: Giles, "Collected matrix derivative results" (2008); for Cholesky
Murray, "Differentiation of the Cholesky decomposition" (2016). Matrices are the last two axes; H is the adjoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import UnimplementedError
from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate
from ...dtypes import DataType
from .matmul_gradients import matmul, unstretch_batch

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def adjoint(op: Forward, x: Tensor) -> Tensor:
    """The last two axes swapped, and conjugates: a product with the identity would cost more than this one node."""
    rank = op.make("Rank", x)
    order = op.make("ConcatV2", [op.make("Range", 0, rank - 2, 1), op.make("Pack", [rank - 1, rank - 2])], 0)
    return op.make("ConjugateTranspose", x, order)


def transpose(op: Forward, x: Tensor) -> Tensor:
    """The last two axes swapped."""
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
    """d x = g x^-H; the sign does not change."""
    return (as_matrix(op, grad) * op.make("MatrixInverse", op.inputs[0], adjoint=True),)


@gradient("MatrixSolve")
def solve(op: Forward, grad: Tensor) -> Gradients:
    """Of x = a^-1 b: d b = a^-H g, d a = -d b x^H; of the adjoint's likewise."""
    a, adjoined = op.inputs[0], op.attrs["adjoint"]
    db = op.make("MatrixSolve", a, grad, adjoint=not adjoined)
    return -_outer(op, db, op.outputs[0], adjoined), db


def _outer(op: Forward, db: Tensor, x: Tensor, adjoined: bool) -> Tensor:
    return matmul(op, x, db, adj_b=True) if adjoined else matmul(op, db, x, adj_b=True)


@gradient("MatrixTriangularSolve")
def triangular_solve(op: Forward, grad: Tensor) -> Gradients:
    """As of MatrixSolve, in the triangle that is read."""
    a, lower, adjoined = op.inputs[0], op.attrs["lower"], op.attrs["adjoint"]
    db = op.make("MatrixTriangularSolve", a, grad, lower=lower, adjoint=not adjoined)
    da = band(op, -_outer(op, db, op.outputs[0], adjoined), -1 if lower else 0, 0 if lower else -1)
    return unstretch_batch(op, da, 0), unstretch_batch(op, db, 1)


@gradient("BandedTriangularSolve")
def banded_solve(op: Forward, grad: Tensor) -> Gradients:
    """As of MatrixSolve, in the bands, which are stored as rows."""
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


@gradient("Cholesky")
def cholesky(op: Forward, grad: Tensor) -> Gradients:
    """d a = sym(l^-H P(l^H g) l^-1), P the lower triangle with half the diagonal, sym(m) = (m + m^H) / 2."""
    factor = op.outputs[0]
    inner = band(op, matmul(op, factor, grad, adj_a=True), -1, 0)
    inner = inner - band(op, inner, 0, 0) * 0.5
    left = op.make("MatrixTriangularSolve", factor, inner, lower=True, adjoint=True)
    both = op.make("MatrixTriangularSolve", factor, adjoint(op, left), lower=True, adjoint=True)
    return ((both + adjoint(op, both)) * 0.5,)


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
    """x y^H + y x^H."""
    return matmul(op, x, y, adj_b=True) + matmul(op, y, x, adj_b=True)


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
