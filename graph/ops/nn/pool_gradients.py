"""Gradients of pooling, and of the ops that compute those gradients.

A maximum passes its gradient to the element it was; an average distributes it equally over its window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import shape_of, zeros_like

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_ATTRS = ("ksize", "strides", "padding", "explicit_paddings", "data_format")


def _max_pool(forward: str, back: str, back_twice: str) -> None:
    """Registers the gradients of max pooling and of its two gradients; sizes may be inputs after the first."""

    @gradient(forward)
    def of_forward(op: Forward, grad: Tensor) -> Gradients:
        x, *windows = op.inputs
        dx = op.make(back, x, op.outputs[0], grad, *windows, **op.own_attrs(*_ATTRS))
        return dx, *[None] * len(windows)

    _selects(back, back_twice)
    _selects(back_twice, back)


def _selects(name: str, inverse: str) -> None:
    """Registers an op (x, y, g, ...) that moves the elements of g to where x took y from, or back."""

    @gradient(name)
    def rule(op: Forward, grad: Tensor) -> Gradients:
        x, y, _, *windows = op.inputs
        attrs = op.own_attrs(*_ATTRS)
        if attrs.get("explicit_paddings") == ():
            del attrs["explicit_paddings"]
        moved = op.make(inverse, x, y, grad, *windows, **attrs)
        return zeros_like(op, 0), zeros_like(op, 1), moved, *[None] * len(windows)


_max_pool("MaxPool", "MaxPoolGrad", "MaxPoolGradGrad")
_max_pool("MaxPoolV2", "MaxPoolGradV2", "MaxPoolGradGradV2")
_max_pool("MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad")


@gradient("MaxPoolWithArgmax", takes_none=True)
def max_pool_with_argmax(op: Forward, grad: Tensor, _argmax: None) -> Gradients:
    """The gradient goes to the elements whose positions the second output holds."""
    attrs = op.own_attrs("ksize", "strides", "padding", "include_batch_in_index")
    return (op.make("MaxPoolGradWithArgmax", op.inputs[0], grad, op.outputs[1], **attrs),)


def _average_pool(forward: str, back: str) -> None:
    """Registers the gradients of average pooling and of its gradient."""

    @gradient(forward)
    def of_forward(op: Forward, grad: Tensor) -> Gradients:
        return (op.make(back, shape_of(op, 0), grad, **op.own_attrs(*_ATTRS)),)

    @gradient(back)
    def of_gradient(op: Forward, grad: Tensor) -> Gradients:
        return None, op.make(forward, grad, **op.own_attrs(*_ATTRS))


_average_pool("AvgPool", "AvgPoolGrad")
_average_pool("AvgPool3D", "AvgPool3DGrad")
