"""Shape functions of fake quantisation and its gradients; ranges are scalars, or one per channel of the last axis."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    shape_fn,
    unchanged,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape

shape_fn("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient")(unchanged)


@shape_fn("FakeQuantWithMinMaxVars")
def with_scalars(c: ShapeContext) -> Sequence[Shape]:
    """The values' shape; the ends of the range are scalars."""
    with_rank(c.inputs[1], 0)
    with_rank(c.inputs[2], 0)
    return (c.inputs[0],)


@shape_fn("FakeQuantWithMinMaxVarsPerChannel")
def per_channel(c: ShapeContext) -> Sequence[Shape]:
    """The values' shape, whose last size must agree with the ends."""
    _channels(c.inputs[0], c.inputs[1], c.inputs[2])
    return (c.inputs[0],)


def _channels(x: Shape, low: Shape, high: Shape) -> int | None:
    """The number of channels, from the ends and the values."""
    channels = merge_dims(with_rank(low, 1)[0], with_rank(high, 1)[0])
    x = with_rank_at_least(x, 1)
    return channels if x is None else merge_dims(x[-1], channels)


@shape_fn("FakeQuantWithMinMaxVarsGradient")
def gradient_with_scalars(c: ShapeContext) -> Sequence[Shape]:
    """The values' shape, and two scalars."""
    with_rank(c.inputs[2], 0)
    with_rank(c.inputs[3], 0)
    return (merge(c.inputs[0], c.inputs[1]), (), ())


@shape_fn("FakeQuantWithMinMaxVarsPerChannelGradient")
def gradient_per_channel(c: ShapeContext) -> Sequence[Shape]:
    """The values' shape, and two vectors of one number per channel."""
    x = merge(c.inputs[0], c.inputs[1])
    ends = (_channels(x, c.inputs[2], c.inputs[3]),)
    return (x, ends, ends)
