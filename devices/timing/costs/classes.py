"""Classes of ops whose times err together: what a source gets wrong of one product, it gets wrong of the next.

    MatMul, Einsum              product             Cholesky                 factorisation
    Conv2D, Conv2DBackpropInput convolution         Relu, Sum, BiasAdd       memory-bound
    FlashAttention              attention           copy (a transfer)        copy
    GroupedMatMul               grouped product

By the family that the cost table has of an op and by its name; an op of a future registration needs no list here.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from ...kernels.op_cost import is_matrix

OpClass = Literal["product", "convolution", "attention", "grouped product", "factorisation", "memory-bound", "copy"]


@cache
def op_class(op: str) -> OpClass:
    """The class of an op; "copy" for the transfers of a timeline, which have that word for their op."""
    name = op.lower()
    if op == "copy":
        return "copy"
    if "attention" in name:
        return "attention"
    if "groupedmatmul" in name or "groupedgemm" in name:
        return "grouped product"
    if not is_matrix(op):
        return "memory-bound"
    if "conv" in name:
        return "convolution"
    return "product" if "matmul" in name or op == "Einsum" else "factorisation"
