"""Shape functions of convolutions and their gradients; a gradient has the shape of the tensor it is the gradient of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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


@shape_fn("Conv")
def conv_of_any_rank(c: ShapeContext) -> Sequence[Shape]:
    """As Conv2D or Conv3D, with the batch axes of the input."""
    rank, batch_axes = len(c.attrs["strides"]), c.attrs["batch_dims"]
    x = c.inputs[0]
    if x is None or c.inputs[1] is None:
        return (None,)
    if len(x) - batch_axes != rank - 1:
        raise InvalidArgumentError(
            f"The input must have {rank - 2} spatial dimensions but got {len(x) - batch_axes - 1}"
        )
    spatial, first = "DHW"[5 - rank :], c.attrs["data_format"] == b"CHANNELS_FIRST"
    own = {
        "data_format": (f"NC{spatial}" if first else f"N{spatial}C").encode(),
        "dilations": c.attrs["dilations"] or (1,) * rank,
    }
    inputs = (None, *x[batch_axes:]), c.inputs[1]
    (result,) = conv(replace(c, op=f"Conv{rank - 2}D", attrs={**c.attrs, **own}, inputs=inputs))
    return (None if result is None else (*x[:batch_axes], *result[1:]),)


@shape_fn("FusedPadConv2D", "FusedResizeAndPadConv2D")
def conv_of_mirrored(c: ShapeContext) -> Sequence[Shape]:
    """As a convolution of the resized image with its border."""
    images, *sizes, paddings, window = c.inputs
    x = with_rank(images, 4)
    with_rank(paddings, 2)
    if sizes:
        x = (x[0], *ranked_shape_from(c, 1, 2), x[3])
    widths = c.constant(len(sizes) + 1)
    if widths is None:
        x = (None,) * 4
    else:
        x = tuple(None if n is None else n + int(width.sum()) for n, width in zip(x, widths, strict=True))
    return conv(replace(c, op="Conv2D", inputs=(x, window)))


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
