"""Costs of convolutions and their gradients.

Every output point of a convolution costs 2 * (filter points) * (input channels of its group); both gradients compute
exactly the products of the forward pass (Dumoulin and Visin, A guide to convolution arithmetic, chapters 2 and 4).
Filters are [spatial..., in channels per group, out channels], so groups and image layouts do not matter.
"""

from __future__ import annotations

from math import prod

from ..op_cost import CostContext, Dims, flops

_CONVOLUTIONS = ("Conv2D", "Conv3D", "_FusedConv2D", "_FusedConv3D", "Conv")
_DEPTHWISE = "DepthwiseConv2dNative"


def _per_output(filter_dims: Dims) -> int:
    """Operations per output point: all filter dimensions but the last are summed over."""
    return 2 * prod(filter_dims[:-1])


@flops(*_CONVOLUTIONS, matrix=True)
def convolution(c: CostContext) -> int:
    """inputs: image, filter."""
    return _per_output(c.inputs[1]) * c.elements_out()


@flops(
    "Conv2DBackpropInput",
    "Conv2DBackpropInputV2",
    "Conv3DBackpropInput",
    "Conv3DBackpropInputV2",
    matrix=True,
)
def convolution_input_gradient(c: CostContext) -> int:
    """inputs: image or its sizes, filter, gradient of the output."""
    return _per_output(c.inputs[1]) * c.elements_in(2)


@flops(
    "Conv2DBackpropFilter",
    "Conv2DBackpropFilterV2",
    "Conv3DBackpropFilter",
    "Conv3DBackpropFilterV2",
    matrix=True,
)
def convolution_filter_gradient(c: CostContext) -> int:
    """inputs: image, filter or its sizes, gradient of the output; the output has the filter's shape."""
    return _per_output(c.outputs[0]) * c.elements_in(2)


@flops(_DEPTHWISE, "_FusedDepthwiseConv2dNative")
def depthwise(c: CostContext) -> int:
    """Every output point depends on one channel: 2 * filter height * filter width."""
    return 2 * prod(c.inputs[1][:2]) * c.elements_out()


@flops(f"{_DEPTHWISE}BackpropInput")
def depthwise_input_gradient(c: CostContext) -> int:
    """inputs: image sizes, filter, gradient of the output."""
    return 2 * prod(c.inputs[1][:2]) * c.elements_in(2)


@flops(f"{_DEPTHWISE}BackpropFilter")
def depthwise_filter_gradient(c: CostContext) -> int:
    """inputs: image, filter sizes, gradient of the output; the output has the filter's shape."""
    return 2 * prod(c.outputs[0][:2]) * c.elements_in(2)
