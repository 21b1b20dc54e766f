"""Costs of layer normalisation and its gradient: each is one pass over its tensors."""

from __future__ import annotations

from ..op_cost import CostContext, flops


@flops("Partita>LayerNorm")
def layer_norm(c: CostContext) -> int:
    """Per element: mean and centring (2), its square and the sum (2), the factor, gain and offset (3); 4 per row."""
    return 7 * c.elements_in() + 4 * c.elements_out(1)


@flops("Partita>LayerNormGrad")
def layer_norm_gradient(c: CostContext) -> int:
    """Per element: normal (2), the sums over rows (3), d y gain (1), two means (3), d x (4)."""
    return 13 * c.elements_in()
