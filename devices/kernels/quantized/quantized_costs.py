"""Costs of arithmetic on quantised tensors: products as those of floats, conversions a few operations per element."""

from __future__ import annotations

from ..op_cost import CostContext, Product, flops, moves, products

moves("QuantizedReshape")


@products("QuantizedMatMul")
def matmul_product(c: CostContext) -> Product:
    """m and n are the sizes of the output."""
    m, n = c.outputs[0]
    return Product(m, n, c.inputs[0][0 if c.attrs.get("transpose_a") else 1])


@flops("QuantizedMatMul", matrix=True)
def matmul(c: CostContext) -> int:
    """2k for each element of the product."""
    return 2 * c.elements_out() * c.inputs[0][0 if c.attrs.get("transpose_a") else 1]


@flops("QuantizedConv2D", matrix=True)
def conv(c: CostContext) -> int:
    """2 for each cell and channel of the window at each element of the result."""
    return 2 * c.elements_out() * (c.elements_in(1) // max(c.inputs[1][-1], 1))


@flops("QuantizedMaxPool", "QuantizedAvgPool")
def pool(c: CostContext) -> int:
    """One operation for each cell of each window."""
    _, rows, columns, _ = c.attrs["ksize"]
    return int(rows * columns) * c.elements_out()


@flops("QuantizedAdd", "QuantizedBiasAdd", "QuantizedConcat", "Requantize", "RequantizePerChannel", "UniformRequantize")
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
