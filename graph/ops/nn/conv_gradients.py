"""Gradients of convolutions, and of the ops that compute those gradients.

Convolution is bilinear: of the three ops (forward, gradient of the input, gradient of the filter) the gradients of each
are the other two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import shape_of

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_ATTRS = ("strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu")


def _trio(forward: str, to_input: str, to_filter: str) -> None:
    """Registers the gradients of these three ops."""

    @gradient(forward)
    def of_forward(op: Forward, grad: Tensor) -> Gradients:
        attrs = op.own_attrs(*_ATTRS)
        x, f = op.inputs
        dx = op.make(to_input, shape_of(op, 0), f, grad, **attrs) if op.wants(0) else None
        df = op.make(to_filter, x, shape_of(op, 1), grad, **attrs) if op.wants(1) else None
        return dx, df

    @gradient(to_input)
    def of_input_gradient(op: Forward, grad: Tensor) -> Gradients:
        attrs = op.own_attrs(*_ATTRS)
        _, f, back = op.inputs
        df = op.make(to_filter, grad, shape_of(op, 1), back, **attrs) if op.wants(1) else None
        dback = op.make(forward, grad, f, **attrs) if op.wants(2) else None
        return None, df, dback

    @gradient(to_filter)
    def of_filter_gradient(op: Forward, grad: Tensor) -> Gradients:
        attrs = op.own_attrs(*_ATTRS)
        x, _, back = op.inputs
        dx = op.make(to_input, shape_of(op, 0), grad, back, **attrs) if op.wants(0) else None
        dback = op.make(forward, x, grad, **attrs) if op.wants(2) else None
        return dx, None, dback


_trio("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")
_trio("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")
_trio("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter")
