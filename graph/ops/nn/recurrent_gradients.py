"""Gradients of an LSTM over time: cells and outputs take part, gates and what is in between do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("BlockLSTM", "BlockLSTMV2")
def block_lstm(op: Forward, *grads: Tensor) -> Gradients:
    """Both versions go through BlockLSTMGrad, as in TensorFlow: so it reads version two's gates in the wrong order."""
    back = op.make_all("BlockLSTMGrad", *op.inputs, *op.outputs, grads[1], grads[6], **op.own_attrs("use_peephole"))
    return None, *back
