"""Shape functions of arithmetic on quantised tensors: those of the plain ops, and scalars for the ends of ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...analysis.shape_functions import (
    ShapeContext,
    broadcast_binary,
    shape_fn,
    with_rank,
)
from ...dtypes import Shape
from ..arrays.shape_ops_shapes import reshape
from ..arrays.slicing_shapes import concat
from ..linalg.matmul_shapes import matmul
from ..nn.bias_shapes import bias_add
from ..nn.conv_shapes import conv
from ..nn.pool_shapes import pool


def _scalars(c: ShapeContext, first: int) -> None:
    """Raises InvalidArgumentError unless the inputs from `first` on may be scalars."""
    for end in c.inputs[first:]:
        with_rank(end, 0)


@shape_fn("QuantizedMatMul")
def quantized_mat_mul(c: ShapeContext) -> Sequence[Shape]:
    _scalars(c, 2)
    return (*matmul(replace(c, inputs=c.inputs[:2])), (), ())


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


@shape_fn("QuantizedReshape")
def quantized_reshape(c: ShapeContext) -> Sequence[Shape]:
    _scalars(c, 2)
    return (*reshape(c), (), ())


@shape_fn("UniformQuantize", "UniformDequantize", "UniformRequantize")
def uniform(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the first input."""
    return (c.inputs[0],)
