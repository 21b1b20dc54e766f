"""Value rules of arithmetic, comparisons, truth values and choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...analysis.value_rules import ArrayFunction, InferredValues, ValueContext, array_rule, value_rule
from ...dtypes import Array


def _binary(function: np.ufunc) -> ArrayFunction:
    return lambda _, v: function(v[0], v[1])


def _quotient(function: np.ufunc) -> ArrayFunction:
    """A function of a dividend and a divisor without zeros."""

    def divide(_: ValueContext, v: list[Array]) -> Any:  # Any: see ArrayFunction
        if not np.all(v[1]):
            raise ZeroDivisionError
        return function(v[0], v[1])

    return divide


array_rule("Add", "AddV2", whole=())(_binary(np.add))
array_rule("Sub", whole=())(_binary(np.subtract))
array_rule("Mul", whole=())(_binary(np.multiply))
array_rule("FloorDiv", whole=())(_quotient(np.floor_divide))
array_rule("FloorMod", whole=())(_quotient(np.remainder))
array_rule("Maximum", whole=())(_binary(np.maximum))
array_rule("Minimum", whole=())(_binary(np.minimum))
array_rule("Neg", whole=())(lambda _, v: -v[0])
array_rule("Cast", whole=())(lambda _, v: v[0])
array_rule("Equal")(_binary(np.equal))
array_rule("NotEqual")(_binary(np.not_equal))
array_rule("Less")(_binary(np.less))
array_rule("LessEqual")(_binary(np.less_equal))
array_rule("Greater")(_binary(np.greater))
array_rule("GreaterEqual")(_binary(np.greater_equal))
array_rule("LogicalAnd")(_binary(np.logical_and))
array_rule("LogicalOr")(_binary(np.logical_or))
array_rule("LogicalNot")(lambda _, v: ~v[0])
array_rule("ZerosLike")(lambda _, v: np.zeros_like(v[0]))
array_rule("OnesLike")(lambda _, v: np.ones_like(v[0]))
array_rule("Select", "SelectV2", whole=(0,))(lambda _, v: np.where(v[0], v[1], v[2]))


@value_rule("BroadcastGradientArgs")
def broadcast_gradient_args(c: ValueContext) -> InferredValues | None:
    """The axes along which either operand was broadcast: where it has size one (or no axis) in the common shape."""
    known = c.known()
    if known is None:
        return None
    shapes = [value.tolist() for value in known]
    if shapes[0] == shapes[1]:
        return [np.array([], c.dtype)] * 2
    rank = max(map(len, shapes))
    padded = ([1] * (rank - len(shape)) + shape for shape in shapes)
    return [np.array([i for i, size in enumerate(shape) if size == 1], c.dtype) for shape in padded]
