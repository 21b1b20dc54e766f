"""Costs of the cross entropy over some of the classes."""

from __future__ import annotations

from ..op_cost import CostContext, flops


@flops("Partita>SoftmaxCrossEntropy")
def cross_entropy(c: CostContext) -> int:
    """Per logit the maximum, the subtraction, the exponential and the sum."""
    return 4 * c.elements_in()


@flops("Partita>SoftmaxCrossEntropyGrad")
def cross_entropy_grad(c: CostContext) -> int:
    """Per logit the subtraction, the exponential and a product."""
    return 3 * c.elements_in()
