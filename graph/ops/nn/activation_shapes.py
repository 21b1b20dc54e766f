"""Shape functions of activations: the shape of the input, with which a gradient's second input must agree."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge, shape_fn, unchanged
from ...dtypes import Shape

shape_fn("Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign")(unchanged)


@shape_fn("ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad")
def gradient(c: ShapeContext) -> Sequence[Shape]:
    """The merged shape of both inputs."""
    return (merge(c.inputs[0], c.inputs[1]),)
