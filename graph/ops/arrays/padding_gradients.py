"""Gradients of padding: a constant border is cut off, a mirrored one is added to the elements it mirrors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import shape_of

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Pad", "PadV2")
def pad(op: Forward, grad: Tensor) -> Gradients:
    """The gradient without the border."""
    kind = op.input_types[1]
    before, _ = op.make_all("Unpack", op.inputs[1], num=2, axis=1)
    inside = op.make("Slice", grad, before, shape_of(op, 0, kind))
    return inside, *[None] * (len(op.input_types) - 1)


@gradient("MirrorPad")
def mirror_pad(op: Forward, grad: Tensor) -> Gradients:
    return op.make("MirrorPadGrad", grad, op.inputs[1], **op.own_attrs("mode")), None


@gradient("MirrorPadGrad")
def mirror_pad_grad(op: Forward, grad: Tensor) -> Gradients:
    return op.make("MirrorPad", grad, op.inputs[1], **op.own_attrs("mode")), None
