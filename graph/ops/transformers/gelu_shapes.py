"""Shape functions of GELU and its gradient."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge, shape_fn
from ...dtypes import Shape


@shape_fn("Partita>Gelu")
def gelu(c: ShapeContext) -> Sequence[Shape]:
    """The shape of x."""
    return (c.inputs[0],)


@shape_fn("Partita>GeluGrad")
def gelu_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape of x and of the gradient of what was made of it."""
    return (merge(c.inputs[0], c.inputs[1]),)
