"""Costs of random numbers that take more than an operation per number."""

from __future__ import annotations

from ..op_cost import CostContext, flops


@flops("Multinomial", "StatelessMultinomial")
def multinomial(c: CostContext) -> int:
    """A subtraction, an exponential and an addition per logit; a binary search among the classes per sample."""
    return 3 * c.elements_in(0) + c.elements_out() * max(c.inputs[0][-1], 1).bit_length()
