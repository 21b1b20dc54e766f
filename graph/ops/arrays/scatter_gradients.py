"""Gradients of scatters: slices get the gradient gathered at their indices, indices get none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import zeros_like

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def _gathered(op: Forward, grad: Tensor, indices: Tensor) -> Tensor:
    return op.make("GatherNd", grad, indices)


@gradient("ScatterNd")
def scatter_nd(op: Forward, grad: Tensor) -> Gradients:
    return None, _gathered(op, grad, op.inputs[0]), None


@gradient("ScatterNdNonAliasingAdd", "TensorScatterAdd")
def scatter_add(op: Forward, grad: Tensor) -> Gradients:
    return grad, None, _gathered(op, grad, op.inputs[1])


@gradient("TensorScatterSub")
def scatter_sub(op: Forward, grad: Tensor) -> Gradients:
    return grad, None, -_gathered(op, grad, op.inputs[1])


@gradient("TensorScatterUpdate")
def scatter_update(op: Forward, grad: Tensor) -> Gradients:
    """The tensor gets zeros where it was overwritten; the updates get the gathered gradient."""
    indices = op.inputs[1]
    return op.make("TensorScatterUpdate", grad, indices, zeros_like(op, 2)), None, _gathered(op, grad, indices)


@gradient("TensorScatterMax", "TensorScatterMin")
def scatter_extremum(op: Forward, grad: Tensor) -> Gradients:
    """The tensor and the updates that equal the extremum share the gradient equally."""
    x, indices, updates = op.inputs
    y = op.outputs[0]
    of_x = op.make("Cast", op.make("Equal", x, y), DstT=x.dtype)
    of_updates = op.make("Cast", op.make("Equal", updates, _gathered(op, y, indices)), DstT=x.dtype)
    shares = grad / op.make("TensorScatterAdd", of_x, indices, of_updates)
    return of_x * shares, None, of_updates * _gathered(op, shares, indices)
