"""Shapes of activation functions: those of their inputs, which must agree.

Flows in: the shape of features and, for a gradient, of what flows back. Flows out: that shape. Always holds: input and
output have the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge, shape_fn, unchanged
from ...dtypes import Shape

shape_fn("Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign")(unchanged)


@shape_fn("ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad")
def gradient(c: ShapeContext) -> Sequence[Shape]:
    """What both inputs tell of their one shape."""
    return (merge(c.inputs[0], c.inputs[1]),)
