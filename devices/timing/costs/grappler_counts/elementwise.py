"""Ops that compute each element apart, reductions too: a fixed number of operations per element, of any type.

The elements are those of the largest input or of the output, whichever are more, or of the inputs broadcast together.
Operations are those that Eigen gives its functors on a CPU with AVX, as in TensorFlow's own wheels.
"""

from __future__ import annotations

from math import prod

from ....kernels.op_cost import CostContext
from .count import CountRule, GrapplerCount, broadcast_elements, counted

OPERATIONS_PER_ELEMENT = {
    1: (
        "Add AddV2 All ApproximateEqual ArgMax BiasAdd Cast Ceil Dequantize Equal Erf Erfc Floor Greater GreaterEqual "
        "InvGrad Less LessEqual Lgamma LogicalAnd LogicalNot LogicalOr Max Maximum Min Minimum Mul Neg NotEqual Prod "
        "QuantizedAdd QuantizedBiasAdd QuantizedMul Relu Relu6 ReluGrad Rint Round Select SelectV2 Square Sub Sum "
        "TopKV2 Where"
    ),
    2: "SquaredDifference",
    3: "Sign",
    4: "Inv QuantizeV2 Reciprocal",
    5: "Acos Asin Atan Cos QuantizeAndDequantizeV2 QuantizeAndDequantizeV4 Rsqrt Sin Tan",
    8: "FloorMod Mod Sqrt TruncateMod",
    14: "Div FloorDiv RealDiv TruncateDiv",
    19: "Atan2",
    34: "Exp Expm1",
    36: "Tanh",
    40: "Sigmoid",
    50: "Log Log1p",
}


def _largest(c: CostContext) -> int:
    return max(map(prod, (*c.inputs, *c.outputs[:1])))


def _per_element(operations: int) -> CountRule:
    def rule(c: CostContext) -> GrapplerCount:
        elements = _largest(c) if len(c.inputs) < 2 else max(_largest(c), broadcast_elements(c))
        return counted(operations * elements, c)

    return rule


def _sum_of_tensors(c: CostContext) -> GrapplerCount:
    """An addition less than there are tensors, per element."""
    return counted((len(c.inputs) - 1) * _largest(c), c)


def _softmax(c: CostContext) -> GrapplerCount:
    """36 operations per element, and 4 per size of the first axis (not per row)."""
    return counted(36 * c.elements_in() + 4 * c.inputs[0][0], c)


def _assigned(c: CostContext) -> GrapplerCount:
    """An operation per element of the value. Inputs: resource, value."""
    return counted(c.elements_in(1), c)


RULES: dict[str, CountRule] = {
    "AssignAddVariableOp": _assigned,
    "AssignSubVariableOp": _assigned,
    "AddN": _sum_of_tensors,
    "Softmax": _softmax,
    **{op: _per_element(operations) for operations, ops in OPERATIONS_PER_ELEMENT.items() for op in ops.split()},
}
