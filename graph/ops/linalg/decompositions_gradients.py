"""Gradients of factorisations: QR, Cholesky, eigenvalues, singular values.

Formulas: Seeger et al., "Auto-differentiating linear algebra" (2017) for QR and symmetric eigenvalues; Giles,
"Collected matrix derivative results" (2008) for eigenvalues; Townsend, "Differentiating the singular value
decomposition" (2016); Murray, "Differentiation of the Cholesky decomposition" (2016).

Vectors of equal eigenvalues or singular values have no gradient: the result is 0 or infinite, as in TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import UnimplementedError
from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import COMPLEX, number
from ...dtypes import DataType
from .linalg_gradients import adjoint, band
from .matmul_gradients import matmul

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def _known_sizes(op: Forward) -> tuple[int, int]:
    sizes = op.input_sizes(0)
    if not isinstance(sizes, tuple) or min(sizes[-2:]) < 0:
        raise UnimplementedError(f"{op.name!r}: rows and columns have to be known; fix their sizes", node=op.name)
    return sizes[-2], sizes[-1]


def _columns(op: Forward, x: Tensor, begin: int, end: int | None) -> Tensor:
    """Columns `begin` to `end` of matrices."""
    bounds = [op.g.constant(pair, DataType.INT32) for pair in ([0, begin], [0, end or 0], [1, 1])]
    return op.make("StridedSlice", x, *bounds, ellipsis_mask=1, end_mask=2 if end is None else 0)


@gradient("Qr")
def qr(op: Forward, dq: Tensor, dr: Tensor) -> Gradients:
    """Tall: d a = (d q + q c(r d r^H - d q^H q)) r^-H, c(m) the lower triangle and its mirror image.

    Wide, a = [x y]: r = [u v], y = q v gives d y = q d v and adds y d v^H to d q; x = q u is square.
    """
    rows, columns = _known_sizes(op)
    q, r = op.outputs
    if op.attrs["full_matrices"] and rows > columns:
        raise UnimplementedError(f"{op.name!r}: a full QR of a tall matrix has no gradient", node=op.name)
    if rows >= columns:
        return (_tall_qr(op, q, r, dq, dr),)
    y = _columns(op, op.inputs[0], rows, None)
    dv = _columns(op, dr, rows, None)
    dx = _tall_qr(op, q, _columns(op, r, 0, rows), dq + matmul(op, y, dv, adj_b=True), _columns(op, dr, 0, rows))
    return (op.make("ConcatV2", [dx, matmul(op, q, dv)], op.g.constant(-1, DataType.INT32)),)


def _tall_qr(op: Forward, q: Tensor, r: Tensor, dq: Tensor, dr: Tensor) -> Tensor:
    m = matmul(op, r, dr, adj_b=True) - matmul(op, dq, q, adj_a=True)
    lower = band(op, m, -1, 0)
    mirrored = lower + adjoint(op, lower - band(op, m, 0, 0))
    left = dq + matmul(op, q, mirrored)
    return adjoint(op, op.make("MatrixTriangularSolve", r, adjoint(op, left), lower=False, adjoint=False))


def _differences(op: Forward, values: Tensor) -> Tensor:
    """1 / (e_j - e_i) at row i, column j; 0 where they are equal."""
    last, before = op.g.constant(-1, DataType.INT32), op.g.constant(-2, DataType.INT32)
    difference = op.make("ExpandDims", values, before) - op.make("ExpandDims", values, last)
    return op.make("DivNoNan", number(op, 1, values), difference)


def _diagonal(op: Forward, values: Tensor) -> Tensor:
    return op.make("MatrixDiag", values)


def _like(op: Forward, real: Tensor, like: Tensor) -> Tensor:
    """A real tensor, cast to the type of another."""
    return real if real.dtype == like.dtype else op.make("Cast", real, DstT=like.dtype)


@gradient("SelfAdjointEigV2")
def self_adjoint_eig(op: Forward, de: Tensor, dv: Tensor) -> Gradients:
    """v (diag(d e) + f o v^H d v) v^H, f_ij = 1 / (e_j - e_i), moved into the lower triangle, which is read."""
    a = op.inputs[0]
    if op.attrs["compute_v"]:
        e, v = op.outputs
        inner = _diagonal(op, _like(op, de, a)) + _like(op, _differences(op, e), a) * matmul(op, v, dv, adj_a=True)
    else:
        _, v = op.make_all("SelfAdjointEigV2", a, compute_v=True)
        inner = _diagonal(op, _like(op, de, a))
    da = matmul(op, v, matmul(op, inner, v, adj_b=True))
    both = band(op, da + adjoint(op, da), -1, 0)
    return (both - band(op, both, 0, 0) * 0.5,)


@gradient("Eig")
def eig(op: Forward, de: Tensor, dv: Tensor) -> Gradients:
    """v^-H (diag(d e) + conj(f) o (v^H d v - v^H v diag(Re diag(v^H d v)))) v^H, for vectors of length 1."""
    a, kind = op.inputs[0], op.output_types[0]
    if op.attrs["compute_v"]:
        e, v = op.outputs
        turned = matmul(op, v, dv, adj_a=True)
        along = op.make("Real", op.make("MatrixDiagPart", turned), Tout=_real_type(kind))
        free = turned - matmul(op, matmul(op, v, v, adj_a=True), _diagonal(op, _like(op, along, v)))
        inner = _diagonal(op, de) + op.make("Conj", _differences(op, e)) * free
    else:
        _, v = op.make_all("Eig", a, compute_v=True, Tout=kind)
        inner = _diagonal(op, de)
    da = op.make("MatrixSolve", v, matmul(op, inner, v, adj_b=True), adjoint=True)
    return (da if a.dtype in COMPLEX else op.make("Cast", da, DstT=a.dtype),)


def _real_type(kind: DataType) -> DataType:
    return DataType.FLOAT if kind is DataType.COMPLEX64 else DataType.DOUBLE


@gradient("Svd")
def svd(op: Forward, ds: Tensor, du: Tensor, dv: Tensor) -> Gradients:
    """u (diag(d s) + (f o (u^H d u - d u^H u)) s + s (f o (v^H d v - d v^H v))) v^H plus two terms outside the spaces.

    f_ij = 1 / (s_j^2 - s_i^2); the terms are (I - u u^H) d u s^-1 v^H + u s^-1 d v^H (I - v v^H). Raises
    UnimplementedError for full matrices that are not square, and for vectors of complex matrices (their phases are
    free).
    """
    a = op.inputs[0]
    if not op.attrs["compute_uv"]:
        _, u, v = op.make_all("Svd", a, compute_uv=True)
        return (matmul(op, u, matmul(op, _diagonal(op, _like(op, ds, a)), v, adj_b=True)),)
    rows, columns = _known_sizes(op)
    if a.dtype in COMPLEX or (op.attrs["full_matrices"] and rows != columns):
        raise UnimplementedError(
            f"{op.name!r}: singular vectors have a gradient for real matrices, without full_matrices", node=op.name
        )
    s, u, v = op.outputs
    f = _differences(op, op.make("Square", s))
    ut_du, vt_dv = matmul(op, u, du, adj_a=True), matmul(op, v, dv, adj_a=True)
    by_column = op.make("ExpandDims", s, op.g.constant(-2, DataType.INT32))
    by_row = op.make("ExpandDims", s, op.g.constant(-1, DataType.INT32))
    inner = f * (ut_du - adjoint(op, ut_du)) * by_column + by_row * f * (vt_dv - adjoint(op, vt_dv))
    da = matmul(op, u, matmul(op, inner + _diagonal(op, ds), v, adj_b=True))
    over_s = op.make("DivNoNan", number(op, 1, s), by_column)
    if rows > columns:
        da = da + matmul(op, (du - matmul(op, u, ut_du)) * over_s, v, adj_b=True)
    if columns > rows:
        da = da + matmul(op, u * over_s, dv - matmul(op, v, vt_dv), adj_b=True)
    return (da,)


@gradient("Cholesky")
def cholesky(op: Forward, grad: Tensor) -> Gradients:
    """d a = sym(l^-H P(l^H g) l^-1), P the lower triangle with half the diagonal, sym(m) = (m + m^H) / 2."""
    factor = op.outputs[0]
    inner = band(op, matmul(op, factor, grad, adj_a=True), -1, 0)
    inner = inner - band(op, inner, 0, 0) * 0.5
    left = op.make("MatrixTriangularSolve", factor, inner, lower=True, adjoint=True)
    both = op.make("MatrixTriangularSolve", factor, adjoint(op, left), lower=True, adjoint=True)
    return ((both + adjoint(op, both)) * 0.5,)
