"""Partita's own ops of experts and of large vocabularies: grouped products, and a cross entropy over parts of a row.

`docs/own_ops.md` says what each computes. U is double where T is double, else float.
"""

from __future__ import annotations

GROUPED_MATMUL = """
    Partita>GroupedMatMul
    input x: T                               # [rows, k], those of group 0 first
    input weights: T                         # [groups, k, n]
    input rows_per_group: Trows              # [groups], they add up to the rows of x
    output product: T                        # [rows, n]
    attr T: {bfloat16, half, float, double}
    attr Trows: {int32, int64} = int32
    attr transpose_b: bool = false           # weights are [groups, n, k]
    attr assumed_imbalance: float = 1.0      # on the clock: the rows there really are, by those of the shape
"""
GROUPED_MATMUL_GRAD = """
    Partita>GroupedMatMulGrad
    input x: T                               # [rows, k]
    input d_product: T                       # [rows, n]
    input rows_per_group: Trows              # [groups]
    output d_weights: T                      # [groups, k, n]
    attr T: {bfloat16, half, float, double}
    attr Trows: {int32, int64} = int32
    attr transpose_b: bool = false           # d_weights are [groups, n, k]
    attr assumed_imbalance: float = 1.0
"""
SOFTMAX_CROSS_ENTROPY = """
    Partita>SoftmaxCrossEntropy
    input logits: T                          # [rows, classes], of some of the classes
    input labels: Tlabels                    # [rows], a class by its number among all; below 0: of none
    input first_class: int32                 # the number of column 0
    output logsumexp: U                      # [rows], over these classes
    output target: U                         # [rows], the logit of the label; 0 if it is not here
    attr T: {bfloat16, half, float, double}
    attr U: {float, double} = float
    attr Tlabels: {int32, int64} = int32
    attr classes_end: int >= 0 = 0           # classes from this number on do not count; 0: all do
"""
SOFTMAX_CROSS_ENTROPY_GRAD = """
    Partita>SoftmaxCrossEntropyGrad
    input logits: T
    input labels: Tlabels
    input first_class: int32
    input logsumexp: U
    input d_logsumexp: U
    input d_target: U
    output d_logits: T                       # [rows, classes]
    attr T: {bfloat16, half, float, double}
    attr U: {float, double} = float
    attr Tlabels: {int32, int64} = int32
    attr classes_end: int >= 0 = 0
"""

DECLARATIONS = (GROUPED_MATMUL, GROUPED_MATMUL_GRAD, SOFTMAX_CROSS_ENTROPY, SOFTMAX_CROSS_ENTROPY_GRAD)
"""in words (`declaration.py`)"""

HOST_ARGS: dict[str, frozenset[str]] = {
    "Partita>GroupedMatMul": frozenset(),
    "Partita>GroupedMatMulGrad": frozenset(),
    "Partita>SoftmaxCrossEntropy": frozenset({"first_class"}),
    "Partita>SoftmaxCrossEntropyGrad": frozenset({"first_class"}),
}
"""the arguments in host memory, by op, on devices of every kind"""
