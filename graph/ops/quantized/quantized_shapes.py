"""Shape functions of arithmetic on quantised tensors: those of the plain ops, and scalars for the ends of ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...analysis.shape_functions import (
    ShapeContext,
    broadcast_binary,
    merge_dims,
    shape_fn,
    with_rank,
)
from ...dtypes import Shape
from ..arrays.shape_ops_shapes import reshape
from ..arrays.slicing_shapes import concat, concat_v2
from ..linalg.matmul_shapes import matmul
from ..nn.bias_shapes import bias_add
from ..nn.conv_shapes import conv, depthwise_conv
from ..nn.pool_shapes import pool
from .uniform_convolution import Layout


def _scalars(c: ShapeContext, first: int) -> None:
    """Raises InvalidArgumentError unless the inputs from `first` on may be scalars."""
    for end in c.inputs[first:]:
        with_rank(end, 0)


@shape_fn("QuantizedMatMul")
def quantized_mat_mul(c: ShapeContext) -> Sequence[Shape]:
    _scalars(c, 2)
    return (*matmul(replace(c, inputs=c.inputs[:2])), (), ())


@shape_fn(
    "QuantizedMatMulWithBias",
    "QuantizedMatMulWithBiasAndDequantize",
    "QuantizedMatMulWithBiasAndRelu",
    "QuantizedMatMulWithBiasAndReluAndRequantize",
    "QuantizedMatMulWithBiasAndRequantize",
)
def quantized_mat_mul_with_bias(c: ShapeContext) -> Sequence[Shape]:
    """The ends of the range of the product follow it, unless it is one of floats."""
    with_rank(c.inputs[2], 1)
    _scalars(c, 3)
    return (*matmul(replace(c, inputs=c.inputs[:2])), (), ())[: len(c.output_types)]


@shape_fn(
    *("QuantizedConv2DAndRelu", "QuantizedConv2DAndReluAndRequantize", "QuantizedConv2DAndRequantize"),
    *("QuantizedConv2DPerChannel", "QuantizedConv2DWithBias", "QuantizedConv2DWithBiasAndRelu"),
    *("QuantizedConv2DWithBiasAndReluAndRequantize", "QuantizedConv2DWithBiasAndRequantize"),
)
def fused_conv_2d(c: ShapeContext) -> Sequence[Shape]:
    """The range of 32-bit sums has as many ends as that of the filter."""
    return (*conv(replace(c, inputs=c.inputs[:2])), *_ends_of_sums(c))


@shape_fn(
    *("QuantizedDepthwiseConv2D", "QuantizedDepthwiseConv2DWithBias", "QuantizedDepthwiseConv2DWithBiasAndRelu"),
    "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
)
def fused_depthwise_conv_2d(c: ShapeContext) -> Sequence[Shape]:
    """As other fused convolutions."""
    return (*depthwise_conv(replace(c, inputs=c.inputs[:2])), *_ends_of_sums(c))


def _ends_of_sums(c: ShapeContext) -> Sequence[Shape]:
    return ((), ()) if c.op.endswith("Requantize") else c.inputs[5:7] if "WithBias" in c.op else c.inputs[4:6]


@shape_fn("QuantizedConv2D")
def quantized_conv_2d(c: ShapeContext) -> Sequence[Shape]:
    _scalars(c, 2)
    return (*conv(replace(c, inputs=c.inputs[:2])), (), ())


@shape_fn("QuantizedAdd", "QuantizedMul")
def quantized_binary(c: ShapeContext) -> Sequence[Shape]:
    """The operands broadcast against each other."""
    return (*broadcast_binary(c), (), ())


@shape_fn("QuantizedBiasAdd")
def quantized_bias_add(c: ShapeContext) -> Sequence[Shape]:
    _scalars(c, 2)
    return (*bias_add(c), (), ())


@shape_fn("QuantizedRelu", "QuantizedRelu6", "Requantize", "QuantizeDownAndShrinkRange")
def quantized_elementwise(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the first input."""
    _scalars(c, 1)
    return (c.inputs[0], (), ())


@shape_fn("RequantizePerChannel")
def requantize_per_channel(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the first input; the old range has one end for each channel."""
    for end in c.inputs[1:3]:
        with_rank(end, 1)
    _scalars(c, 3)
    return (c.inputs[0], (), ())


@shape_fn("RequantizationRange")
def requantization_range(c: ShapeContext) -> Sequence[Shape]:
    _scalars(c, 1)
    return ((), ())


@shape_fn("RequantizationRangePerChannel")
def requantization_range_per_channel(c: ShapeContext) -> Sequence[Shape]:
    for end in c.inputs[1:3]:
        with_rank(end, 1)
    return ((), ())


@shape_fn("QuantizedMaxPool", "QuantizedAvgPool")
def quantized_pool(c: ShapeContext) -> Sequence[Shape]:
    _scalars(c, 1)
    return (pool(c)[0], (), ())


@shape_fn("QuantizedConcat")
def quantized_concat(c: ShapeContext) -> Sequence[Shape]:
    count = c.attrs["N"]
    _scalars(c, 1 + count)
    return (*concat(replace(c, inputs=c.inputs[: 1 + count])), (), ())


@shape_fn("QuantizedConcatV2")
def quantized_concat_v2(c: ShapeContext) -> Sequence[Shape]:
    """The axis comes behind the values."""
    count = c.attrs["N"]
    _scalars(c, 1 + count)
    return (*concat_v2(replace(c, inputs=c.inputs[: 1 + count])), (), ())


@shape_fn("QuantizedInstanceNorm")
def quantized_instance_norm(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the image."""
    with_rank(c.inputs[0], 4)
    _scalars(c, 1)
    return (c.inputs[0], (), ())


@shape_fn("QuantizedReshape")
def quantized_reshape(c: ShapeContext) -> Sequence[Shape]:
    _scalars(c, 2)
    return (*reshape(c), (), ())


@shape_fn("UniformQuantizedDot", "UniformQuantizedDotHybrid")
def uniform_dot(c: ShapeContext) -> Sequence[Shape]:
    """The product of two plain matrices."""
    left, right = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 2)
    merge_dims(left[1], right[0])
    return ((left[0], right[1]),)


@shape_fn("UniformQuantizedConvolution", "UniformQuantizedConvolutionHybrid")
def uniform_convolution(c: ShapeContext) -> Sequence[Shape]:
    """Batch and spatial sizes of the image, features of the filter, in the axes that the attrs say."""
    image, window = c.inputs[:2]
    if image is None or window is None:
        return (None,)
    layout = Layout.of(c.attrs, len(image))
    numbers = layout.numbers
    sizes = [*(image[axis] for axis in numbers.image[2:]), *(window[axis] for axis in numbers.window[2:])]
    known = [size for size in sizes if size is not None]
    spatial = len(image) - 2
    result: list[int | None] = [None] * len(image)
    batch, groups = image[numbers.image[0]], int(c.attrs["batch_group_count"])
    result[numbers.result[0]] = None if batch is None else batch // groups
    result[numbers.result[1]] = window[numbers.window[0]]
    if len(known) == 2 * spatial:
        for axis, count in zip(numbers.result[2:], layout.counts(known[:spatial], known[spatial:]), strict=True):
            result[axis] = count
    return (tuple(result),)


@shape_fn("UniformQuantizedAdd")
def uniform_add(c: ShapeContext) -> Sequence[Shape]:
    """The operands broadcast against each other."""
    return broadcast_binary(c)


@shape_fn("UniformQuantize", "UniformDequantize", "UniformRequantize", "UniformQuantizedClipByValue")
def uniform(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the first input."""
    return (c.inputs[0],)
