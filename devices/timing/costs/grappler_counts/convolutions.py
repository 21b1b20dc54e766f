"""Convolutions and their gradients: a multiply-add per output element and weight of its window.

A gradient does as many operations as its convolution, whose image and filter it knows: of the two that it computes or
gets, one is an input and one the output.
"""

from __future__ import annotations

from .....graph.dtypes import Dims
from ....kernels.op_cost import CostContext
from .count import CountRule, GrapplerCount, counted
from .windows import windows


def _convolved(c: CostContext, image: Dims, kernel: Dims, *, depthwise: bool) -> GrapplerCount:
    """The filter has height, width, channels per group, and outputs (of each channel, if `depthwise`)."""
    height, width, depth_in, depth_out = kernel
    seen = windows(c, image, (height, width))
    weights = seen.depth * depth_out if depthwise else depth_in * depth_out
    return counted(2 * seen.positions * seen.window * weights, c)


def _forward(*, depthwise: bool) -> CountRule:
    return lambda c: _convolved(c, c.inputs[0], c.inputs[1], depthwise=depthwise)


def _to_image(*, depthwise: bool) -> CountRule:
    """Inputs: shape of the image, filter, gradient."""
    return lambda c: _convolved(c, c.outputs[0], c.inputs[1], depthwise=depthwise)


def _to_filter(*, depthwise: bool) -> CountRule:
    """Inputs: image, shape of the filter, gradient."""
    return lambda c: _convolved(c, c.inputs[0], c.outputs[0], depthwise=depthwise)


RULES: dict[str, CountRule] = {
    "Conv2D": _forward(depthwise=False),
    "Conv2DBackpropInput": _to_image(depthwise=False),
    "Conv2DBackpropFilter": _to_filter(depthwise=False),
    "DepthwiseConv2dNative": _forward(depthwise=True),
    "DepthwiseConv2dNativeBackpropInput": _to_image(depthwise=True),
    "DepthwiseConv2dNativeBackpropFilter": _to_filter(depthwise=True),
}
