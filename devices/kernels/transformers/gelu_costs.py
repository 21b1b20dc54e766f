"""Costs of GELU and its gradient: each is one pass over its tensors."""

from __future__ import annotations

from ..op_cost import CostContext, flops


@flops("Partita>Gelu")
def gelu(c: CostContext) -> int:
    """Per element, by tanh: its argument (5), tanh as one operation, and 3; the exact one has about as many."""
    return 9 * c.elements_in()


@flops("Partita>GeluGrad")
def gelu_gradient(c: CostContext) -> int:
    """Per element, by tanh: that and its slope (15), and the product."""
    return 16 * c.elements_in()
