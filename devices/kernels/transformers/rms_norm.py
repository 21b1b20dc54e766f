"""RMSNorm (Zhang and Sennrich, Root Mean Square Layer Normalization, 2019) over the last axis, and its gradient.

Half types are computed in float32 and rounded once: the gain too, unlike where a library rounds before it.
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


def _check(x: Array, gain: Array) -> None:
    if x.ndim < 1 or gain.shape != x.shape[-1:]:
        raise InvalidArgumentError(
            f"x has the shape {shape_text(x.shape)} and gain {shape_text(gain.shape)}; gain must have rank 1, and the "
            "last axis of x must be as long"
        )


@kernel("Partita>RMSNorm")
def rms_norm(node: Construction) -> Kernel:
    """x / sqrt(mean(x^2) + epsilon) * gain, and the factor of each row; that of an empty row is 1 / sqrt(epsilon)."""
    check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])
    epsilon = float(node.attrs["epsilon"])

    def normalise(x: Array, gain: Array) -> tuple[Array, Array]:
        _check(x, gain)
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
        _check(x, gain)
        for name, given, wanted in (("inverse_rms", inverse_rms, x.shape[:-1]), ("d_y", d_y, x.shape)):
            if given.shape != wanted:
                raise InvalidArgumentError(
                    f"{name} has the shape {shape_text(given.shape)}, but x has {shape_text(x.shape)}, which gives "
                    f"{shape_text(wanted)}"
                )
        factors, slopes, size = inverse_rms[..., None], widen(d_y), x.shape[-1]
        normal = widen(x) * factors
        d_gain = np.add.reduce((slopes * normal).reshape(x.size // max(1, size), size), 0)
        d_normal = slopes * widen(gain)
        means = np.add.reduce(d_normal * normal, -1, keepdims=True) / normal.dtype.type(max(1, size))
        d_normal -= normal * means
        d_normal *= factors
        return d_normal.astype(x.dtype, copy=False), np.asarray(d_gain, gain.dtype)

    return of_dense(gradient)
