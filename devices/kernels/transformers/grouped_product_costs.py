"""Costs of grouped products: the groups' products together, and each tensor once."""

from __future__ import annotations

from ..op_cost import CostContext, flops


@flops("Partita>GroupedMatMul", matrix="grouped product")
def grouped_matmul(c: CostContext) -> int:
    """2*k*n for every row, whichever group it is in."""
    return 2 * c.inputs[0][1] * c.elements_out()


@flops("Partita>GroupedMatMulGrad", matrix="grouped product")
def grouped_matmul_grad(c: CostContext) -> int:
    """2*k*n for every row."""
    return 2 * c.elements_in(0) * c.inputs[1][1]
