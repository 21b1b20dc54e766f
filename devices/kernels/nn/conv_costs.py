"""Costs of convolutions and their gradients.

Every output point of a convolution costs 2 * (filter points) * (input channels of its group); both gradients compute
exactly the products of the forward pass (Dumoulin and Visin, A guide to convolution arithmetic, chapters 2 and 4).
Filters are [spatial..., in channels per group, out channels], so groups and image layouts do not matter to that count.

As an implicit matrix product with N images, P x Q output points, C and K channels and R x S filter points (Chetlur et
al., cuDNN: Efficient Primitives for Deep Learning, 2014), each divided by the groups:

    forward            m = N*P*Q   n = K   k = R*S*C
    to the input       m = N*H*W   n = C   k = R*S*K / strides (only the products that exist are counted)
    to the filter      m = R*S*C   n = K   k = N*P*Q
"""

from __future__ import annotations

from math import prod

from ....graph.dtypes import Dims
from ..op_cost import CostContext, convolutions, flops, is_matrix, products
from ..op_forms import Convolution, Product

_CONVOLUTIONS = ("Conv2D", "Conv3D", "_FusedConv2D", "_FusedConv3D", "Conv")
_INPUT_GRADIENTS = (
    "Conv2DBackpropInput",
    "Conv2DBackpropInputV2",
    "Conv3DBackpropInput",
    "Conv3DBackpropInputV2",
)
_FILTER_GRADIENTS = (
    "Conv2DBackpropFilter",
    "Conv2DBackpropFilterV2",
    "Conv3DBackpropFilter",
    "Conv3DBackpropFilterV2",
)
_DEPTHWISE = "DepthwiseConv2dNative"


def _per_output(filter_dims: Dims) -> int:
    """Operations per output point: all filter dimensions but the last are summed over."""
    return 2 * prod(filter_dims[:-1])


@flops(*_CONVOLUTIONS, matrix="convolution")
def convolution(c: CostContext) -> int:
    """inputs: image, filter."""
    return _per_output(c.inputs[1]) * c.elements_out()


@flops(*_INPUT_GRADIENTS, matrix="convolution")
def convolution_input_gradient(c: CostContext) -> int:
    """inputs: image or its sizes, filter, gradient of the output."""
    return _per_output(c.inputs[1]) * c.elements_in(2)


@flops(*_FILTER_GRADIENTS, matrix="convolution")
def convolution_filter_gradient(c: CostContext) -> int:
    """inputs: image, filter or its sizes, gradient of the output; the output has the filter's shape."""
    return _per_output(c.outputs[0]) * c.elements_in(2)


def _channels(c: CostContext, image: Dims) -> int:
    """Channels of an image in the layout of the op."""
    layout = c.attrs.get("data_format", b"NHWC")
    return image[1] if layout in (b"NCHW", b"NCDHW") else image[-1]


def _product(m: int, n: int, k: int, groups: int) -> Product:
    return Product(m, n, k, groups, is_implicit=True)


@products(*_CONVOLUTIONS)
def convolution_product(c: CostContext) -> Product:
    """inputs: image, filter."""
    *window, depth, features = c.inputs[1]
    groups = _channels(c, c.inputs[0]) // depth
    return _product(c.elements_out() // features, features // groups, prod(window) * depth, groups)


@products(*_INPUT_GRADIENTS)
def convolution_input_product(c: CostContext) -> Product:
    """inputs: image or its sizes, filter, gradient of the output; the output has the image's shape."""
    *_, depth, _ = c.inputs[1]
    groups = _channels(c, c.outputs[0]) // depth
    m = c.elements_out() // (depth * groups)
    return _product(m, depth, -(-convolution_input_gradient(c) // (2 * m * depth * groups)), groups)


@products(*_FILTER_GRADIENTS)
def convolution_filter_product(c: CostContext) -> Product:
    """inputs: image, filter or its sizes, gradient of the output; the output has the filter's shape."""
    *window, depth, features = c.outputs[0]
    groups = _channels(c, c.inputs[0]) // depth
    return _product(prod(window) * depth, features // groups, c.elements_in(2) // features, groups)


def _pass(c: CostContext, direction: str, image: Dims, result: Dims, filter_dims: Dims) -> Convolution:
    """From the shapes of the forward pass; ValueError unless they are of images, which have 4 dimensions."""
    tall, broad, depth, _ = filter_dims
    layout = "NCHW" if c.attrs.get("data_format") == b"NCHW" else "NHWC"
    rows, columns = (2, 3) if layout == "NCHW" else (1, 2)
    channels = _channels(c, image)
    strides, dilations = (c.attrs.get(name) or [1, 1, 1, 1] for name in ("strides", "dilations"))
    return Convolution(
        direction,
        image[0],
        result[rows],
        result[columns],
        channels,
        _channels(c, result),
        tall,
        broad,
        max(strides[rows], strides[columns]),
        channels // depth,
        max(dilations[rows], dilations[columns]) > 1,
        layout,
    )


@convolutions("Conv2D", "_FusedConv2D", _DEPTHWISE, f"_Fused{_DEPTHWISE}")
def convolution_of_images(c: CostContext) -> Convolution:
    """inputs: image, filter."""
    return _grouped(c, _pass(c, "forward", c.inputs[0], c.outputs[0], c.inputs[1]))


@convolutions("Conv2DBackpropInput", f"{_DEPTHWISE}BackpropInput")
def input_gradient_of_images(c: CostContext) -> Convolution:
    """inputs: image or its sizes, filter, gradient of the output; the output has the image's shape."""
    return _grouped(c, _pass(c, "to_input", c.outputs[0], c.inputs[2], c.inputs[1]))


@convolutions("Conv2DBackpropFilter", f"{_DEPTHWISE}BackpropFilter")
def filter_gradient_of_images(c: CostContext) -> Convolution:
    """inputs: image, filter or its sizes, gradient of the output; the output has the filter's shape."""
    return _grouped(c, _pass(c, "to_filter", c.inputs[0], c.inputs[2], c.outputs[0]))


def _grouped(c: CostContext, of: Convolution) -> Convolution:
    """A depthwise filter is of all channels, and yet each channel is a group."""
    return of._replace(groups=of.channels) if not is_matrix(c.op) else of


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


@flops("FusedPadConv2D", "FusedResizeAndPadConv2D", matrix="convolution")
def mirrored_convolution(c: CostContext) -> int:
    """The filter is the last input."""
    return _per_output(c.inputs[-1]) * c.elements_out()
