"""Gradients of softmax and of the losses on it, along the last axis.

With p = softmax(x) the derivative of p is p (I - p), that of log(p) is I - p.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import unstretch
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def _row_sums(op: Forward, tensor: Tensor) -> Tensor:
    return op.make("Sum", tensor, op.g.constant([-1], DataType.INT32), keep_dims=True)


def _through_softmax(op: Forward, p: Tensor, grad: Tensor) -> Tensor:
    return (grad - _row_sums(op, grad * p)) * p


def times_rows(op: Forward, per_row: Tensor, tensor: Tensor) -> Tensor:
    """`tensor` with each row multiplied by one number of `per_row`."""
    return op.make("ExpandDims", per_row, op.g.constant(-1, DataType.INT32)) * tensor


@gradient("Softmax")
def softmax(op: Forward, grad: Tensor) -> Gradients:
    """d x = p (g - sum(g p))."""
    return (_through_softmax(op, op.outputs[0], grad),)


@gradient("LogSoftmax")
def log_softmax(op: Forward, grad: Tensor) -> Gradients:
    """d x = g - p sum(g)."""
    return (grad - op.make("Exp", op.outputs[0]) * _row_sums(op, grad),)


@gradient("SoftmaxCrossEntropyWithLogits", takes_none=True)
def cross_entropy(op: Forward, of_loss: Tensor | None, of_slope: Tensor | None) -> Gradients:
    """Losses: d x = g (p - labels), which is the second output, d labels = -g log(p). Second output: as softmax."""
    logits, _ = op.inputs
    dx = dlabels = None
    if of_loss is not None:
        dx = times_rows(op, of_loss, op.outputs[1])
        dlabels = unstretch(op, -times_rows(op, of_loss, op.make("LogSoftmax", logits)), 1, 1)
    if of_slope is not None:
        second = _through_softmax(op, op.make("Softmax", logits), of_slope)
        dx = second if dx is None else dx + second
    return None if dx is None else unstretch(op, dx, 0, 1), dlabels


@gradient("SparseSoftmaxCrossEntropyWithLogits", takes_none=True)
def sparse_cross_entropy(op: Forward, of_loss: Tensor | None, of_slope: Tensor | None) -> Gradients:
    """As with dense labels."""
    dx = None if of_loss is None else times_rows(op, of_loss, op.outputs[1])
    if of_slope is not None:
        second = _through_softmax(op, op.make("Softmax", op.inputs[0]), of_slope)
        dx = second if dx is None else dx + second
    return dx, None
