"""Gradients of random numbers by the parameters of their distributions (Figurnov et al., 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import unstretch

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("RandomGamma", "StatelessRandomGammaV2", "StatelessRandomGammaV3")
def gamma(op: Forward, grad: Tensor) -> Gradients:
    """d alpha = g times RandomGammaGrad, summed over the samples of each alpha; shapes and seeds get none."""
    *others, alpha = op.inputs
    last = len(others)
    flowing = unstretch(op, grad * op.make("RandomGammaGrad", alpha, op.outputs[0]), last)
    return (*(None for _ in others), flowing)
