"""The check that there is one bias per channel, for the kernel of BiasAdd and its in-place form."""

from __future__ import annotations

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array


def check_bias(value: Array, bias: Array, *, channel_first: bool) -> None:
    """InvalidArgumentError unless there is one bias per channel of `value`."""
    if value.ndim < 2:
        raise InvalidArgumentError(f"Input tensor must be at least 2D: {shape_text(value.shape)}")
    if bias.ndim != 1:
        raise InvalidArgumentError(f"Biases must be 1D: {shape_text(bias.shape)}")
    if bias.shape[0] != value.shape[1 if channel_first else -1]:
        raise InvalidArgumentError(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{shape_text(bias.shape)} vs. {shape_text(value.shape)}"
        )
