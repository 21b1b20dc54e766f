"""Bias addition and its gradient; channels are the last axis, or axis 1 if data_format is NCHW."""

from __future__ import annotations

from math import prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..dense import of_dense
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel
from .bias_check import check_bias
from .column_sums import column_sums


@kernel("BiasAdd", "BiasAddV1")
def bias_add(node: Construction) -> Kernel:
    """`value` plus the bias of each channel."""
    channel_first = node.attrs.get("data_format") == b"NCHW"

    def add(value: Array, bias: Array) -> Array:
        check_bias(value, bias, channel_first=channel_first)
        if channel_first:
            return value + bias.reshape((-1,) + (1,) * (value.ndim - 2))
        return value + bias

    return in_float32(add, node.output_types[0])


@kernel("BiasAddGrad")
def bias_add_grad(node: Construction) -> Kernel:
    """The sum of the gradient over all axes but the channels."""
    channel_first = node.attrs["data_format"] == b"NCHW"

    def gradient(grad: Array) -> Array:
        if grad.ndim < 2:
            raise InvalidArgumentError(f"Input tensor must be at least 2D: {shape_text(grad.shape)}")
        if not channel_first or grad.ndim == 2:
            return column_sums(grad.reshape(prod(grad.shape[:-1]), grad.shape[-1]))
        return np.asarray(np.sum(grad, axis=(0, *range(2, grad.ndim)), dtype=grad.dtype))

    return of_dense(in_float32(gradient, node.output_types[0]))
