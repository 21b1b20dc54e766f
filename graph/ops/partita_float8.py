"""Partita's own ops of products in 8-bit floats, for the clock alone.

`docs/own_ops.md` says what each stands for. Tensors have a wider type T: what makes a factor is assumed to round it.
"""

from __future__ import annotations

FLOAT8_MATMUL = """
    Partita>Float8MatMul
    input a: T                               # [m, k]
    input b: T                               # [k, n]
    output product: T                        # [m, n]
    attr T: {bfloat16, half, float}
    attr transpose_a: bool = false           # a is [k, m]
    attr transpose_b: bool = false           # b is [n, k]
"""
FLOAT8_GROUPED_MATMUL = """
    Partita>Float8GroupedMatMul
    input x: T                               # [rows, k], those of group 0 first
    input weights: T                         # [groups, k, n]
    input rows_per_group: Trows              # [groups], they add up to the rows of x
    output product: T                        # [rows, n]
    attr T: {bfloat16, half, float}
    attr Trows: {int32, int64} = int32
    attr transpose_b: bool = false           # weights are [groups, n, k]
    attr assumed_imbalance: float = 1.0      # the rows there really are, by those of the shape
"""
FLOAT8_GROUPED_MATMUL_GRAD = """
    Partita>Float8GroupedMatMulGrad
    input x: T                               # [rows, k]
    input d_product: T                       # [rows, n]
    input rows_per_group: Trows              # [groups]
    output d_weights: T                      # [groups, k, n]
    attr T: {bfloat16, half, float}
    attr Trows: {int32, int64} = int32
    attr transpose_b: bool = false           # d_weights are [groups, n, k]
    attr assumed_imbalance: float = 1.0
"""

DECLARATIONS = (FLOAT8_MATMUL, FLOAT8_GROUPED_MATMUL, FLOAT8_GROUPED_MATMUL_GRAD)
"""in words (`declaration.py`)"""

HOST_ARGS: dict[str, frozenset[str]] = {
    "Partita>Float8MatMul": frozenset(),
    "Partita>Float8GroupedMatMul": frozenset(),
    "Partita>Float8GroupedMatMulGrad": frozenset(),
}
"""the arguments in host memory, by op, on devices of every kind"""
