"""Normalisation of own rows [own rows, width]; half precision is widened to float32 inside, as Megatron-LM does."""

from __future__ import annotations

import numpy as np

from ....graph.builder.handles import Tensor
from .network import RankNetwork, wide_type


def layer_norm(network: RankNetwork, x: Tensor, width: int, name: str, epsilon: float) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gain + offset, by the mean and variance of each row (Ba et al. 2016)."""
    b = network.b
    gain, offset = _scale(network, f"{name}/gain", width, 1.0), _scale(network, f"{name}/offset", width, 0.0)
    if network.sizes.fused:
        return b.op("Partita>LayerNorm", x, gain, offset, U=wide_type(x.dtype), epsilon=epsilon, name=name)[0]
    values = network.wide(x)
    centred = b.op(
        "Sub", values, b.op("Mean", values, [1], keep_dims=True, name=f"{name}/mean"), name=f"{name}/centred"
    )
    variance = b.op("Mean", b.op("Square", centred), [1], keep_dims=True, name=f"{name}/variance")
    normal = b.op("Mul", centred, b.op("Rsqrt", variance + _of_attr(epsilon)), name=f"{name}/normal")[0]
    return b.op("AddV2", network.cast(normal, x.dtype) * gain, offset, name=name)[0]


def rms_norm(network: RankNetwork, x: Tensor, width: int, name: str, epsilon: float) -> Tensor:
    """x / sqrt(mean of squares + epsilon) * gain of own rows (Zhang and Sennrich 2019)."""
    return normed(network, x, _scale(network, f"{name}/gain", width, 1.0), name, epsilon)


def normed(network: RankNetwork, x: Tensor, gain: Tensor, name: str, epsilon: float) -> Tensor:
    """`rms_norm` of any rows, with a gain that is there already."""
    b = network.b
    if network.sizes.fused:
        return b.op("Partita>RMSNorm", x, gain, U=wide_type(x.dtype), epsilon=epsilon, name=name)[0]
    values = network.wide(x)
    squares = b.op("Mean", b.op("Square", values), [-1], keep_dims=True, name=f"{name}/squares")
    normal = b.op("Mul", values, b.op("Rsqrt", squares + _of_attr(epsilon)), name=f"{name}/normal")[0]
    return b.op("Mul", network.cast(normal, x.dtype), gain, name=name)[0]


def _scale(network: RankNetwork, name: str, width: int, start: float) -> Tensor:
    """A gain or offset, which the fused kernels take in the precision of the optimizer."""
    return network.vector(name, width, start, is_cast=not network.sizes.fused)


def _of_attr(epsilon: float) -> float:
    """The number as an attr has it, in float32, so that both spellings add the same in float64."""
    return float(np.float32(epsilon))
