"""Layer normalisation (Ba, Kiros and Hinton, Layer Normalization, 2016) over the last axis, and its gradient.

Half types are computed in float32 and rounded once.
"""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.transformers.attention_sizes import check_statistics_type
from ..dense import of_dense
from ..half_types import widen
from ..registry import Construction, Kernel, kernel


def _check(name: str, given: Array, wanted: tuple[int, ...], x: Array) -> None:
    if x.ndim < 1 or given.shape != wanted:
        raise InvalidArgumentError(
            f"x has the shape {shape_text(x.shape)} and {name} {shape_text(given.shape)}; it must be "
            f"{shape_text(wanted) if x.ndim else 'a vector as long as the last axis of x'}"
        )


@kernel("Partita>LayerNorm")
def layer_norm(node: Construction) -> Kernel:
    """(x - mean) / sqrt(variance + epsilon) * gain + offset, and of each row its mean and the factor."""
    check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])
    epsilon = float(node.attrs["epsilon"])

    def normalise(x: Array, gain: Array, offset: Array) -> tuple[Array, Array, Array]:
        for name, given in (("gain", gain), ("offset", offset)):
            _check(name, given, x.shape[-1:], x)
        wide = widen(x)
        size = wide.dtype.type(max(1, x.shape[-1]))
        means = np.asarray(np.add.reduce(wide, -1) / size)
        centred = wide - means[..., None]
        variances = np.add.reduce(np.square(centred), -1) / size
        factors = np.asarray(1 / np.sqrt(variances + wide.dtype.type(epsilon)))
        centred *= factors[..., None]
        centred *= widen(gain)
        centred += widen(offset)
        return centred.astype(x.dtype, copy=False), means, factors

    return of_dense(normalise)


@kernel("Partita>LayerNormGrad")
def layer_norm_grad(node: Construction) -> Kernel:
    """With n = (x - mean) r and h = d_y gain: d_x = r (h - mean(h) - n mean(h n)); sums of d_y n and d_y over rows."""
    check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])

    def gradient(x: Array, gain: Array, mean: Array, inverse_deviation: Array, d_y: Array) -> tuple[Array, ...]:
        _check("gain", gain, x.shape[-1:], x)
        for name, given, wanted in (
            ("mean", mean, x.shape[:-1]),
            ("inverse_deviation", inverse_deviation, x.shape[:-1]),
        ):
            _check(name, given, wanted, x)
        _check("d_y", d_y, x.shape, x)
        factors, slopes, count = inverse_deviation[..., None], widen(d_y), x.shape[-1]
        normal = (widen(x) - mean[..., None]) * factors
        size, rows = normal.dtype.type(max(1, count)), (x.size // max(1, count), count)
        d_gain = np.add.reduce((slopes * normal).reshape(rows), 0)
        d_offset = np.add.reduce(slopes.reshape(rows), 0)
        d_normal = slopes * widen(gain)
        along = np.add.reduce(d_normal * normal, -1, keepdims=True) / size
        d_normal -= np.add.reduce(d_normal, -1, keepdims=True) / size
        d_normal -= normal * along
        d_normal *= factors
        return d_normal.astype(x.dtype, copy=False), np.asarray(d_gain, gain.dtype), np.asarray(d_offset, gain.dtype)

    return of_dense(gradient)
