"""From the name of an op to its class. Times of ops of one class are wrong in the same direction.

    "MatMul", "Einsum"                  "product"            "Cholesky"                  "factorisation"
    "Conv2D", "Conv2DBackpropInput"     "convolution"        "Relu", "Sum", "BiasAdd"    "memory-bound"
    "copy", a transfer in a timeline    "copy"

If a source of costs says too little for one product, it likely does for the next: `interval` adds such errors up, and
takes those of different classes to be independent. An op that runs on the units for matrix products names its class
where it states its count of operations (`flops(op, matrix="product")`), so there is no list of ops here.
"""

from __future__ import annotations

from typing import Literal

from ...kernels.op_cost import MatrixClass, matrix_class

OpClass = MatrixClass | Literal["memory-bound", "copy"]


def op_class(op: str) -> OpClass:
    """The class of an op; "copy" for the transfers of a timeline, which have that word for their op."""
    return "copy" if op == "copy" else matrix_class(op) or "memory-bound"
