"""Gradients of the cross entropy over some of the classes; p is the softmax of a row by its logsumexp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_ATTRS = ("classes_end",)


def _slopes(op: Forward, logsumexp: Tensor, d_logsumexp: Tensor, d_target: Tensor) -> Tensor:
    """p d_logsumexp, and d_target at the label."""
    rows = (logsumexp, d_logsumexp, d_target)
    return op.make("Partita>SoftmaxCrossEntropyGrad", *op.inputs[:3], *rows, **op.own_attrs(*_ATTRS))


@gradient("Partita>SoftmaxCrossEntropy")
def cross_entropy(op: Forward, d_logsumexp: Tensor, d_target: Tensor) -> Gradients:
    """By an op of its own, which reads the logits again."""
    return _slopes(op, op.outputs[0], d_logsumexp, d_target), None, None


@gradient("Partita>SoftmaxCrossEntropyGrad")
def cross_entropy_grad(op: Forward, grad: Tensor) -> Gradients:
    """With v = p g, by the slopes a and b: d logits = a v, d logsumexp = -a sum(v), d a = sum(v), d b = g at the label.

    p is the op itself with slopes 1 and 0, the label's place with 0 and 1.
    """
    logsumexp, slope = op.inputs[3], op.inputs[4]
    ones, zeros = op.make("OnesLike", logsumexp), op.make("ZerosLike", logsumexp)
    wide = op.make("Cast", grad, DstT=logsumexp.dtype)

    def of_rows(d_logsumexp: Tensor, d_target: Tensor) -> Tensor:
        weights = _slopes(op, logsumexp, d_logsumexp, d_target)
        return wide * op.make("Cast", weights, DstT=logsumexp.dtype)

    def summed(values: Tensor) -> Tensor:
        return op.make("Sum", values, op.g.constant([1], DataType.INT32))

    weighted = of_rows(ones, zeros)
    totals = summed(weighted)
    d_logits = op.make("ExpandDims", slope, op.g.constant(1, DataType.INT32)) * weighted
    d_logits = op.make("Cast", d_logits, DstT=op.input_types[0])
    return d_logits, None, None, -slope * totals, totals, summed(of_rows(zeros, ones))
