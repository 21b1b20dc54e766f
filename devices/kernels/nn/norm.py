"""Normalisation: batch norm in all its versions, local response normalisation, and their gradients.

Statistics are float32 whatever the tensor's type.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..dense import of_dense
from ..half_types import widen
from ..linalg.products import matrix_product
from ..registry import Construction, Kernel, kernel
from .column_sums import LARGE, column_means, column_sums, inverse_roots


def _check_vector(name: str, value: Array, channels: int, when: str = "") -> None:
    if value.ndim != 1:
        raise InvalidArgumentError(f"{name} must be 1-dimensional{shape_text(value.shape)}")
    if value.shape[0] != channels:
        start = f"{when}{name}" if when else name
        raise InvalidArgumentError(
            f"{start} must have the same number of elements as the channels of x, got {value.shape[0]} and {channels}"
        )


def _channel_axis(node: Construction, x: Array) -> int:
    if x.ndim not in (4, 5):
        raise InvalidArgumentError(f"input must be 4 or 5-dimensional{shape_text(x.shape)}")
    return 1 if node.attrs["data_format"].startswith(b"NC") else x.ndim - 1


def _spread(value: Array, ndim: int, axis: int) -> Array:
    """A per-channel vector, shaped so that it broadcasts along `axis`."""
    return value.reshape((-1,) + (1,) * (ndim - 1 - axis))


@kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(node: Construction) -> Kernel:
    """y = (x - mean) / sqrt(variance + epsilon) * scale + offset, per channel (Ioffe and Szegedy, 2015).

    In training, mean and variance are the batch's; the other outputs are the running mean and (unbiased) variance,
    blended by exponential_avg_factor, and for the gradient the batch's mean and biased variance. In inference all of
    these are the given mean and variance. V3 has an empty sixth output, which only a GPU fills.
    """
    epsilon = np.float32(node.attrs["epsilon"])
    training = bool(node.attrs["is_training"])
    factor = np.float32(node.attrs.get("exponential_avg_factor", 1.0))
    reserve = (np.zeros((), np.float32),) if node.op == "FusedBatchNormV3" else ()

    def normalise(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
        axis = _channel_axis(node, x)
        channels = x.shape[axis]
        _check_vector("scale", scale, channels)
        _check_vector("offset", offset, channels)
        if not training or factor != 1:
            why = "When exponential_avg_factor != 1, " if training else "When is_training=false, "
            _check_vector("mean", mean, channels, why)
            _check_vector("variance", variance, channels, why)
        if not training:
            used_mean, used_variance, statistics = mean, variance, (mean, variance, mean, variance)
        else:
            used_mean, used_variance, unbiased = _batch_statistics(widen(x), axis)
            running_mean, running_variance = used_mean, unbiased
            if factor != 1:
                running_mean = (1 - factor) * mean + factor * used_mean
                running_variance = (1 - factor) * variance + factor * unbiased
            statistics = (running_mean, running_variance, used_mean, used_variance)
        factors = _inverse_deviations(used_variance + epsilon, training) * scale
        y = _affine(x, used_mean, factors, offset, axis)
        return (y, *statistics, *reserve)

    return of_dense(normalise)


def _channel_sums(x: Array, axis: int) -> Array:
    """The float32 sum of each channel."""
    if axis == x.ndim - 1:
        return column_sums(x.reshape(prod(x.shape[:-1]), x.shape[-1]))
    return np.asarray(x.sum(axis=tuple(a for a in range(x.ndim) if a != axis), dtype=np.float32))


def _channel_means(x: Array, axis: int) -> Array:
    """The float32 mean of each channel of a tensor that is not empty."""
    if axis == x.ndim - 1:
        return column_means(x.reshape(prod(x.shape[:-1]), x.shape[-1]))
    return _channel_sums(x, axis) / np.float32(x.size // x.shape[axis])


def _inverse_deviations(variance: Array, training: bool) -> Array:
    """1 / sqrt(variance); in training with TensorFlow's rounding, since later steps make it visible."""
    return inverse_roots(variance) if training else 1 / np.sqrt(variance)


def _batch_statistics(x: Array, axis: int) -> tuple[Array, Array, Array]:
    """Mean, biased and unbiased variance of each channel of a float32 tensor; nan for an empty batch."""
    count = x.size // x.shape[axis] if x.shape[axis] else 0
    if count == 0:
        nan = np.full(x.shape[axis], np.nan, np.float32)
        return nan, nan, nan
    mean = _channel_means(x, axis)
    centred = x - _spread(mean, x.ndim, axis)
    variance = _channel_means(np.square(centred, out=centred), axis)
    return mean, variance, variance * np.float32(count / max(count - 1, 1))


def _affine(x: Array, mean: Array, factor: Array, offset: Array, axis: int) -> Array:
    """(x - mean) * factor + offset per channel, in x's type."""
    y = widen(x) - _spread(mean, x.ndim, axis)
    y *= _spread(factor, x.ndim, axis)
    y += _spread(offset, x.ndim, axis)
    return y.astype(x.dtype, copy=False)


@kernel("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(node: Construction) -> Kernel:
    """Gradients with respect to x, scale and offset, and two empty tensors (Ioffe and Szegedy, 2015, section 3).

    The reserved inputs are the mean and variance that the forward op used: the batch's in training, else the given.
    """
    epsilon = np.float32(node.attrs["epsilon"])
    training = bool(node.attrs["is_training"])
    nothing = np.zeros(0, np.float32)

    def gradient(dy: Array, x: Array, scale: Array, mean: Array, variance: Array, *_unused: Array) -> tuple[Array, ...]:
        axis = _channel_axis(node, x)
        if x.shape != dy.shape:
            raise InvalidArgumentError(
                "x and y_backprop must have same shape, "
                f"but x has shape {shape_text(x.shape)} and y_backprop has shape {shape_text(dy.shape)}"
            )
        _check_vector("scale", scale, x.shape[axis])
        _check_vector("reserve_space_1", mean, x.shape[axis])
        _check_vector("reserve_space_2", variance, x.shape[axis])
        inverse = _inverse_deviations(variance + epsilon, training)
        parts = _batch_norm_gradient(widen(dy), widen(x), scale, mean, inverse, axis, training)
        return (parts[0].astype(x.dtype, copy=False), *parts[1:], nothing, nothing)

    return of_dense(gradient)


def _batch_norm_gradient(
    dy: Array, x: Array, scale: Array, mean: Array, inverse: Array, axis: int, training: bool
) -> tuple[Array, Array, Array]:
    """The three gradients, in TensorFlow's order of operations, which decides the remainder where terms cancel."""
    ndim = x.ndim
    centred = x - _spread(mean, ndim, axis)
    d_offset = _channel_sums(dy, axis)
    if not training:
        return dy * _spread(scale * inverse, ndim, axis), _channel_sums(dy * centred, axis) * inverse, d_offset
    slanted = _channel_sums(dy * centred, axis)
    if x.size < LARGE:
        d_scale = _channel_sums(dy * (centred * _spread(inverse, ndim, axis)), axis)
    else:
        d_scale = slanted * inverse  # faster; only the last bit may differ
    count = np.float32(max(x.size // max(x.shape[axis], 1), 1))
    slope = slanted / count * (inverse * inverse)
    dx = dy - _spread(d_offset * (1 / count), ndim, axis)
    centred *= _spread(slope, ndim, axis)
    dx -= centred
    dx *= _spread(scale * inverse, ndim, axis)
    return dx, d_scale, d_offset


def _window_sums(x: Array, radius: int) -> Array:
    """Per channel the sum over the channels at most `radius` away: one product with a band of ones."""
    channel = np.arange(x.shape[-1])
    near = np.abs(channel[:, None] - channel) <= radius
    return matrix_product(x.reshape(prod(x.shape[:-1]), len(near)), near.astype(x.dtype)).reshape(x.shape)


def _lrn_attrs(node: Construction) -> tuple[int, np.float32, np.float32, np.float32]:
    attrs = node.attrs
    return int(attrs["depth_radius"]), np.float32(attrs["bias"]), np.float32(attrs["alpha"]), np.float32(attrs["beta"])


@kernel("LRN")
def lrn(node: Construction) -> Kernel:
    """x / (bias + alpha * sum of squares of near channels) ** beta (Krizhevsky et al., 2012, section 3.3)."""
    radius, bias, alpha, beta = _lrn_attrs(node)

    def normalise(x: Array) -> Array:
        require(x.ndim == 4, "in must be 4-dimensional")
        wide = widen(x)
        scale = bias + alpha * _window_sums(np.square(wide), radius)
        return np.asarray(wide * scale**-beta, x.dtype)

    return normalise


@kernel("LRNGrad")
def lrn_grad(node: Construction) -> Kernel:
    """The gradient of LRN from the output's gradient, the input and the output."""
    radius, bias, alpha, beta = _lrn_attrs(node)

    def gradient(grads: Array, image: Array, output: Array) -> Array:
        require(grads.ndim == 4 and image.ndim == 4, "inputs must be 4-dimensional")
        require(
            grads.shape == image.shape == output.shape,
            "input_grads, input_image, and out_image should have the same shape",
        )
        g, x, y = widen(grads), widen(image), widen(output)
        scale = bias + alpha * _window_sums(np.square(x), radius)
        shared = _window_sums(g * y / scale, radius)
        return np.asarray(g * scale**-beta - 2 * alpha * beta * x * shared, grads.dtype)

    return gradient


@kernel("BatchNormWithGlobalNormalization")
def batch_norm_with_global_normalization(node: Construction) -> Kernel:
    """(t - m) / sqrt(v + variance_epsilon) * gamma + beta over the last axis; gamma only where the attr says so."""
    epsilon, scaled = node.attrs["variance_epsilon"], bool(node.attrs["scale_after_normalization"])

    def normalise(t: Array, mean: Array, variance: Array, beta: Array, gamma: Array) -> Array:
        if t.ndim != 4:
            raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(t.shape)}")
        for name, value in {"mean": mean, "var": variance, "beta": beta, "gamma": gamma}.items():
            if value.ndim != 1:
                raise InvalidArgumentError(f"{name} must be 1-dimensional{shape_text(value.shape)}")
            require(not t.size or value.size == t.shape[3], f"{name} must have {t.shape[3]} elements, not {value.size}")
        if not t.size:
            return t
        factor = 1 / np.sqrt(widen(variance) + np.float32(epsilon))
        factor = factor * widen(gamma) if scaled else factor
        return ((widen(t) - widen(mean)) * factor + widen(beta)).astype(t.dtype)

    return normalise
