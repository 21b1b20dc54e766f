"""Costs of arithmetic on quantised tensors: products as those of floats, conversions a few operations per element."""

from __future__ import annotations

from ....graph.ops.xla.dimension_numbers import uniform_conv_numbers
from ..op_cost import CostContext, flops, moves, products
from ..op_forms import Product

moves("QuantizedReshape")


_MAT_MULS = (
    "QuantizedMatMul",
    "QuantizedMatMulWithBias",
    "QuantizedMatMulWithBiasAndDequantize",
    "QuantizedMatMulWithBiasAndRelu",
    "QuantizedMatMulWithBiasAndReluAndRequantize",
    "QuantizedMatMulWithBiasAndRequantize",
)


@products(*_MAT_MULS)
def matmul_product(c: CostContext) -> Product:
    """m and n are the sizes of the output."""
    m, n = c.outputs[0]
    return Product(m, n, c.inputs[0][0 if c.attrs.get("transpose_a") else 1])


@flops(*_MAT_MULS, matrix="product")
def matmul(c: CostContext) -> int:
    """2k for each element of the product."""
    return 2 * c.elements_out() * c.inputs[0][0 if c.attrs.get("transpose_a") else 1]


@flops("UniformQuantizedConvolution", "UniformQuantizedConvolutionHybrid", matrix="convolution")
def uniform_conv(c: CostContext) -> int:
    """2 for each cell and channel of the window at each element of the result."""
    features = uniform_conv_numbers(c.attrs["dimension_numbers"], len(c.inputs[1])).window[0]
    return 2 * c.elements_out() * (c.elements_in(1) // max(c.inputs[1][features], 1))


@flops("UniformQuantizedDot", "UniformQuantizedDotHybrid", matrix="product")
def uniform_dot(c: CostContext) -> int:
    """2k for each element of the product of two plain matrices."""
    return 2 * c.elements_out() * c.inputs[0][1]


@flops(
    *("QuantizedDepthwiseConv2D", "QuantizedDepthwiseConv2DWithBias", "QuantizedDepthwiseConv2DWithBiasAndRelu"),
    "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
)
def depthwise_conv(c: CostContext) -> int:
    """2 for each cell of the window at each element of the result."""
    return 2 * c.elements_out() * c.inputs[1][0] * c.inputs[1][1]


@flops(
    *("QuantizedConv2D", "QuantizedConv2DAndRelu", "QuantizedConv2DAndReluAndRequantize"),
    *("QuantizedConv2DAndRequantize", "QuantizedConv2DPerChannel", "QuantizedConv2DWithBias"),
    *("QuantizedConv2DWithBiasAndRelu", "QuantizedConv2DWithBiasAndReluAndRequantize"),
    "QuantizedConv2DWithBiasAndRequantize",
    matrix="convolution",
)
def conv(c: CostContext) -> int:
    """2 for each cell and channel of the window at each element of the result."""
    return 2 * c.elements_out() * (c.elements_in(1) // max(c.inputs[1][-1], 1))


@flops("QuantizedMaxPool", "QuantizedAvgPool")
def pool(c: CostContext) -> int:
    """One operation for each cell of each window."""
    _, rows, columns, _ = c.attrs["ksize"]
    return int(rows * columns) * c.elements_out()


@flops(
    *("QuantizedAdd", "QuantizedBiasAdd", "QuantizedConcat", "QuantizedConcatV2", "Requantize", "RequantizePerChannel"),
    *("UniformQuantizedAdd", "UniformRequantize"),
)
def conversions(c: CostContext) -> int:
    """To a float, to another integer, and the limits."""
    return 6 * c.elements_out()


@flops("RequantizationRange", "RequantizationRangePerChannel")
def ends(c: CostContext) -> int:
    """Each element is compared with the least and the greatest."""
    return 2 * c.elements_in()


@flops("QuantizeDownAndShrinkRange")
def shrunk(c: CostContext) -> int:
    """Both."""
    return 8 * c.elements_in()


@flops(
    *("Dequantize", "QuantizedInstanceNorm", "QuantizedMul", "QuantizedRelu", "QuantizedRelu6", "UniformDequantize"),
    "UniformQuantizedClipByValue",
)
def from_quantized(c: CostContext) -> int:
    """A difference and a product, or two limits, per element; a product of integers and its limits."""
    return 2 * c.elements_out()


@flops(
    *("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel", "QuantizeAndDequantizeV2"),
    *("QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4", "QuantizeV2", "UniformQuantize"),
)
def to_quantized(c: CostContext) -> int:
    """Two limits, a product, a sum, rounding, and the way back, per element."""
    return 6 * c.elements_out()


@flops("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_gradient(c: CostContext) -> int:
    """Two comparisons, a product and a sum per element."""
    return 4 * c.elements_in()
