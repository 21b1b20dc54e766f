"""Classes of ops whose times err together: what a source gets wrong of one product, it gets wrong of the next.

    MatMul, Einsum              product             Cholesky                 factorisation
    Conv2D, Conv2DBackpropInput convolution         Relu, Sum, BiasAdd       memory-bound
    copy (a transfer)           copy

The count of operations of an op says what it computes on the units for matrix products, so ops of a future registration
need no list here.
"""

from __future__ import annotations

from typing import Literal

from ...kernels.op_cost import MatrixClass, matrix_class

OpClass = MatrixClass | Literal["memory-bound", "copy"]


def op_class(op: str) -> OpClass:
    """The class of an op; "copy" for the transfers of a timeline, which have that word for their op."""
    return "copy" if op == "copy" else matrix_class(op) or "memory-bound"
