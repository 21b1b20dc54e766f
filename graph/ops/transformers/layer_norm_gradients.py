"""The gradient of layer normalisation: an op of its own, which has no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import UnimplementedError
from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Partita>LayerNorm", takes_none=True)
def layer_norm(op: Forward, d_y: Tensor | None, d_mean: Tensor | None, d_inverse: Tensor | None) -> Gradients:
    """Calls LayerNormGrad; the mean and the deviation are there for it alone, and have no gradient."""
    if d_mean is not None or d_inverse is not None:
        raise UnimplementedError(
            f"Partita>LayerNorm {op.name!r} has a gradient by y alone; compute the mean and the deviation apart"
        )
    if d_y is None:
        return None, None, None
    x, gain, _ = op.inputs
    return op.make_all("Partita>LayerNormGrad", x, gain, *op.outputs[1:], d_y)
