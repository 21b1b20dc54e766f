"""Gradients of products and equations with tridiagonal matrices.

Diagonals are stored as rows as long as the main one; the last entry of the upper and the first of the lower are not
part of the matrix and get 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def _moved(op: Forward, tensor: Tensor, axis: int, step: int) -> Tensor:
    """The elements shifted along an axis by one: from the next place (step 1) or the previous (-1); 0 at the end."""
    rank = op.make("Rank", tensor)
    place = op.make("OneHot", rank + axis, rank, 1, 0)
    size = op.make("Shape", tensor) - place
    begin = op.make("ZerosLike", place) if step > 0 else place
    cut = op.make("Slice", tensor, begin, size)
    nothing = op.make("ZerosLike", place)
    pads = [place, nothing] if step > 0 else [nothing, place]
    return op.make("Pad", cut, op.make("Pack", pads, axis=1))


def _row_sums(op: Forward, tensor: Tensor) -> Tensor:
    return op.make("Sum", tensor, op.g.constant(-1, DataType.INT32))


@gradient("TridiagonalMatMul")
def product(op: Forward, grad: Tensor) -> Gradients:
    """The gradient of row i = u_i x_(i+1) + m_i x_i + l_i x_(i-1)."""
    upper, main, lower, x = (conjugate(op, tensor) for tensor in op.inputs)
    axis = op.g.constant(-2, DataType.INT32)
    diagonals = [
        op.make("ExpandDims", _row_sums(op, grad * neighbour), axis)
        for neighbour in (_moved(op, x, -2, -1), x, _moved(op, x, -2, 1))
    ]
    last = op.g.constant(-1, DataType.INT32)
    u, m, lo = (op.make("ExpandDims", op.make("Squeeze", d, squeeze_dims=[-2]), last) for d in (upper, main, lower))
    dx = _moved(op, u * grad, -2, 1) + m * grad + _moved(op, lo * grad, -2, -1)
    return *diagonals, dx


@gradient("TridiagonalSolve")
def solution(op: Forward, grad: Tensor) -> Gradients:
    """d b = a^-H g; the diagonals get those of -d b x^H."""
    upper, main, lower = op.make_all("Unpack", conjugate(op, op.inputs[0]), num=3, axis=-2)
    swapped = [_moved(op, lower, -1, -1), main, _moved(op, upper, -1, 1)]
    turned = op.make("Pack", swapped, axis=-2)
    db = op.make("TridiagonalSolve", turned, grad, **op.own_attrs("partial_pivoting", "perturb_singular"))
    x = conjugate(op, op.outputs[0])
    diagonals = [-_row_sums(op, db * near) for near in (_moved(op, x, -2, -1), x, _moved(op, x, -2, 1))]
    return op.make("Pack", diagonals, axis=-2), db
