"""RMSNorm (Zhang and Sennrich, Root Mean Square Layer Normalization, 2019) over the last axis, and its gradient.

Half types are computed in float32 and rounded once: the gain too, unlike where a library rounds before it. The gain may
have a type of its own, so that weights in float32 meet activations in a half type.
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array
from ....graph.ops.transformers.attention_sizes import check_statistics_type
from ..dense import of_dense
from ..half_types import widen
from ..registry import Construction, Kernel, kernel
from .rows import check_gain, check_rows, rows_summed


@kernel("Partita>RMSNorm")
def rms_norm(node: Construction) -> Kernel:
    """x / sqrt(mean(x^2) + epsilon) * gain, and the factor of each row; that of an empty row is 1 / sqrt(epsilon)."""
    check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])
    epsilon = float(node.attrs["epsilon"])

    def normalise(x: Array, gain: Array) -> tuple[Array, Array]:
        check_gain(x, gain)
        wide = widen(x)
        squares = np.add.reduce(np.square(wide), -1) / wide.dtype.type(max(1, x.shape[-1]))
        factors = np.asarray(1 / np.sqrt(squares + wide.dtype.type(epsilon)))
        y = wide * factors[..., None]
        y *= widen(gain)
        return y.astype(x.dtype, copy=False), factors

    return of_dense(normalise)


@kernel("Partita>RMSNormGrad")
def rms_norm_grad(node: Construction) -> Kernel:
    """With n = x r and h = d_y gain: d_x = r (h - n mean(h n)), d_gain = sum of d_y n over all rows."""
    check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])

    def gradient(x: Array, gain: Array, inverse_rms: Array, d_y: Array) -> tuple[Array, Array]:
        check_gain(x, gain)
        check_rows(x, {"inverse_rms": inverse_rms}, d_y)
        factors, slopes, size = inverse_rms[..., None], widen(d_y), x.shape[-1]
        normal = widen(x) * factors
        d_gain = rows_summed(slopes * normal, gain.dtype)
        d_normal = slopes * widen(gain)
        means = np.add.reduce(d_normal * normal, -1, keepdims=True) / normal.dtype.type(max(1, size))
        d_normal -= normal * means
        d_normal *= factors
        return d_normal.astype(x.dtype, copy=False), d_gain

    return of_dense(gradient)
