"""Shape functions of bias addition and its gradient; there must be one bias per channel."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape


@shape_fn("BiasAdd", "BiasAddV1")
def bias_add(c: ShapeContext) -> Sequence[Shape]:
    """The value's shape; the number of channels may also be known from the bias."""
    channel_first = c.attrs.get("data_format") == b"NCHW"
    value, (biases,) = with_rank_at_least(c.inputs[0], 3 if channel_first else 2), with_rank(c.inputs[1], 1)
    if value is None:
        return (None,)
    axis = 1 if channel_first else len(value) - 1
    channels = merge_dims(value[axis], biases)
    return ((*value[:axis], channels, *value[axis + 1 :]),)


@shape_fn("BiasAddGrad")
def bias_add_grad(c: ShapeContext) -> Sequence[Shape]:
    """One number per channel."""
    channel_first = c.attrs["data_format"] == b"NCHW"
    grad = with_rank_at_least(c.inputs[0], 3 if channel_first else 2)
    axis = 1 if channel_first else -1
    return ((None if grad is None else grad[axis],),)
