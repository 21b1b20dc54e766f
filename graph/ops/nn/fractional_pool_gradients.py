"""Gradients of pooling by a fraction, in the regions that the forward op drew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import shape_of
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("FractionalMaxPool", takes_none=True)
def fractional_max_pool(op: Forward, grad: Tensor | None, *_sequences: None) -> Gradients:
    if grad is None:
        return (None,)
    y, rows, columns = op.outputs
    overlapping = op.own_attrs("overlapping")
    return (op.make("FractionalMaxPoolGrad", op.inputs[0], y, grad, rows, columns, **overlapping),)


@gradient("FractionalAvgPool", takes_none=True)
def fractional_avg_pool(op: Forward, grad: Tensor | None, *_sequences: None) -> Gradients:
    if grad is None:
        return (None,)
    rows, columns = op.outputs[1:]
    shape = op.make("Cast", shape_of(op, 0), DstT=DataType.INT64)
    return (op.make("FractionalAvgPoolGrad", shape, grad, rows, columns, **op.own_attrs("overlapping")),)
