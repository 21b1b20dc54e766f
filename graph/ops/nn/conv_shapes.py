"""Shape functions of convolutions and their gradients; a gradient has the shape of the tensor it is the gradient of."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import ranked_shape_from
from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank
from ...dtypes import Shape
from .windows import WindowAttrs, output_size, window_attrs


def _attrs(c: ShapeContext) -> WindowAttrs:
    return window_attrs(c.attrs, "NDHWC" if "3D" in c.op else "NHWC")


def _swept(attrs: WindowAttrs, x: Sequence[int | None], window: Sequence[int | None]) -> list[int | None]:
    """The output sizes along the spatial axes."""
    parts = zip(attrs.spatial(x), window, attrs.strides, attrs.dilations, attrs.explicit, strict=True)
    return [output_size(n, k, s, d, attrs.padding, e) for n, k, s, d, e in parts]


@shape_fn("Conv2D", "Conv3D")
def conv(c: ShapeContext) -> Sequence[Shape]:
    """The batch of the input, the features of the filter, and the output sizes along the spatial axes."""
    rank = 5 if "3D" in c.op else 4
    x, w = with_rank(c.inputs[0], rank), with_rank(c.inputs[1], rank)
    attrs = _attrs(c)
    channels, depth = x[attrs.channel_axis], w[-2]
    if channels is not None and depth:
        if channels % depth:
            raise InvalidArgumentError(
                f"Depth of input ({channels}) is not a multiple of input depth of filter ({depth})"
            )
        groups = channels // depth
        if groups < 1:
            raise InvalidArgumentError(f"Depth of input ({channels}) and of filter ({depth}) make no group")
        if groups > 1 and w[-1] is not None and w[-1] % groups:
            raise InvalidArgumentError(
                f"Depth of output ({w[-1]}) is not a multiple of the number of groups ({groups})"
            )
    return (attrs.assemble(x[attrs.layout.index("N")], _swept(attrs, x, w[:-2]), w[-1]),)


@shape_fn("DepthwiseConv2dNative")
def depthwise_conv(c: ShapeContext) -> Sequence[Shape]:
    """As a convolution, with channels times multiplier features."""
    x, w = with_rank(c.inputs[0], 4), with_rank(c.inputs[1], 4)
    attrs = _attrs(c)
    depth = merge_dims(x[attrs.channel_axis], w[2])
    features = None if depth is None or w[3] is None else depth * w[3]
    return (attrs.assemble(x[attrs.layout.index("N")], _swept(attrs, x, w[:2]), features),)


@shape_fn("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput")
def backprop_input(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the first input holds; in Conv2D the batch is that of the gradient.

    A first input of two elements holds the spatial sizes; the others come from the gradient and the filter.
    """
    attrs = _attrs(c)
    if c.op != "Conv2DBackpropInput":
        return (ranked_shape_from(c, 0, attrs.rank),)
    value = c.constant(0)
    w, y = with_rank(c.inputs[1], 4), with_rank(c.inputs[2], 4)
    if value is None or value.size != 2:
        return ((y[0], *ranked_shape_from(c, 0, 4)[1:]),)
    return (attrs.assemble(y[0], [int(n) for n in value], w[2]),)


@shape_fn("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter")
def backprop_filter(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the second input holds; the attrs are checked in the run."""
    return (ranked_shape_from(c, 1, 5 if "3D" in c.op else 4),)
