"""Gradients of grouped products: grouped products again, of the same groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


_GRADS = {
    "Partita>GroupedMatMul": "Partita>GroupedMatMulGrad",
    "Partita>Float8GroupedMatMul": "Partita>Float8GroupedMatMulGrad",
}
_PRODUCTS = {grad: product for product, grad in _GRADS.items()}


def _product(op: Forward, x: Tensor, weights: Tensor, *, transpose_b: bool) -> Tensor:
    kept = op.own_attrs("assumed_imbalance")
    return op.make(_PRODUCTS.get(op.op, op.op), x, weights, op.inputs[2], transpose_b=transpose_b, **kept)


@gradient("Partita>GroupedMatMul", "Partita>Float8GroupedMatMul")
def grouped_matmul(op: Forward, grad: Tensor) -> Gradients:
    """Of each group d x = g W^T, d W = x^T g, where W is the matrix that x is multiplied by."""
    turned, d_x, d_weights = op.attrs["transpose_b"], None, None
    if op.wants(0):
        d_x = _product(op, grad, op.inputs[1], transpose_b=not turned)
    if op.wants(1):
        kept = op.own_attrs("transpose_b", "assumed_imbalance")
        d_weights = op.make(_GRADS[op.op], op.inputs[0], grad, op.inputs[2], **kept)
    return d_x, d_weights, None


@gradient("Partita>GroupedMatMulGrad", "Partita>Float8GroupedMatMulGrad")
def grouped_matmul_grad(op: Forward, grad: Tensor) -> Gradients:
    """Of x^T g in each group, by the gradient G of that: d x = g G^T, d g = x G."""
    turned, d_x, d_product = op.attrs["transpose_b"], None, None
    if op.wants(0):
        d_x = _product(op, op.inputs[1], grad, transpose_b=not turned)
    if op.wants(1):
        d_product = _product(op, op.inputs[0], grad, transpose_b=turned)
    return d_x, d_product, None
