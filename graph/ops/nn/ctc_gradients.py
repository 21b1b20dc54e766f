"""Gradient of the CTC loss: the op's second output, which cannot be differentiated again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from .softmax_gradients import times_rows

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("CTCLoss", "CTCLossV2", takes_none=True)
def ctc_loss(op: Forward, of_loss: Tensor | None, _of_slope: None) -> Gradients:
    """g times the second output."""
    if of_loss is None:
        return [None] * 4
    slope = op.make(
        "PreventGradient",
        op.outputs[1],
        message="the gradient of a CTC loss has no gradient; stop it before it is differentiated again",
    )
    return times_rows(op, of_loss, slope), None, None, None
