"""Gradients of ops on diagonals. An element read from a diagonal gets its gradient there, all others get 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import zeros_like

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("MatrixBandPart")
def matrix_band_part(op: Forward, grad: Tensor) -> Gradients:
    return op.make("MatrixBandPart", grad, *op.inputs[1:]), None, None


@gradient("Diag")
def diag(op: Forward, grad: Tensor) -> Gradients:
    return (op.make("DiagPart", grad),)


@gradient("DiagPart")
def diag_part(op: Forward, grad: Tensor) -> Gradients:
    return (op.make("Diag", grad),)


@gradient("MatrixDiag")
def matrix_diag(op: Forward, grad: Tensor) -> Gradients:
    return (op.make("MatrixDiagPart", grad),)


@gradient("MatrixDiagPart")
def matrix_diag_part(op: Forward, grad: Tensor) -> Gradients:
    return (op.make("MatrixSetDiag", zeros_like(op, 0), grad),)


@gradient("MatrixSetDiag")
def matrix_set_diag(op: Forward, grad: Tensor) -> Gradients:
    """The matrix gets the gradient with zeros on the diagonal, the diagonal gets the gradient's diagonal."""
    return op.make("MatrixSetDiag", grad, zeros_like(op, 1)), op.make("MatrixDiagPart", grad)


def _part(op: Forward, grad: Tensor, k: Tensor) -> Tensor:
    nothing = op.g.constant(0, grad.dtype)
    version = op.op[-2:]
    return op.make(f"MatrixDiagPart{version}", grad, k, nothing, **op.own_attrs("align"))


@gradient("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_v3(op: Forward, grad: Tensor) -> Gradients:
    """The diagonals of the gradient; nothing for their numbers, the sizes and the padding."""
    return _part(op, grad, op.inputs[1]), None, None, None, None


@gradient("MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part_v3(op: Forward, grad: Tensor) -> Gradients:
    """Zeros, with the gradient on the diagonals that were read."""
    version = op.op[-2:]
    dx = op.make(f"MatrixSetDiag{version}", zeros_like(op, 0), grad, op.inputs[1], **op.own_attrs("align"))
    return dx, None, None


@gradient("MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag_v3(op: Forward, grad: Tensor) -> Gradients:
    """The matrix gets the gradient with zeros on the diagonals, the diagonals get those of the gradient."""
    k = op.inputs[2]
    dx = op.make(op.op, grad, zeros_like(op, 1), k, **op.own_attrs("align"))
    return dx, _part(op, grad, k), None
