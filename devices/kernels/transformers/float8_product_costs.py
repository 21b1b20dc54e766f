"""Costs of products in 8-bit floats: the operations of MatMul at another rate, and factors of a byte an element.

    [m, k] x [k, n] in bfloat16      2 m k n operations, m k + k n bytes read, 2 m n written

Grouped ones have the formulas of grouped products.
"""

from __future__ import annotations

from ....graph.dtypes import DataType
from ..linalg.linalg_costs import matmul, matmul_product
from ..op_cost import CostContext, bytes_moved, computes_in, factor_bytes, flops, products

computes_in(DataType.FLOAT8_E4M3FN, "Partita>Float8MatMul")
flops("Partita>Float8MatMul", matrix="product")(matmul)
products("Partita>Float8MatMul")(matmul_product)


@bytes_moved("Partita>Float8MatMul")
def product_bytes(c: CostContext) -> int:
    """Both factors in 8 bits, and the product as it is."""
    return (c.elements_in(0) + c.elements_in(1)) * factor_bytes(c) + c.bytes_out()
