"""LayerNorm (Ba, Kiros and Hinton, Layer Normalization, 2016) over the last axis, and its gradient.

Half types are computed in float32 and rounded once: gain and offset too. The gain may have a type of its own, so that
weights in float32 meet activations in a half type.
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
from .rows import check_gain, check_rows, rows_summed


@kernel("Partita>LayerNorm")
def layer_norm(node: Construction) -> Kernel:
    """(x - mean) / sqrt(variance + epsilon) * gain + offset, with the mean and the factor of each row."""
    check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])
    epsilon = float(node.attrs["epsilon"])

    def normalise(x: Array, gain: Array, offset: Array) -> tuple[Array, Array, Array]:
        check_gain(x, gain)
        if offset.shape != gain.shape:
            raise InvalidArgumentError(
                f"offset has the shape {shape_text(offset.shape)}, but gain has {shape_text(gain.shape)}"
            )
        wide = widen(x)
        size = wide.dtype.type(max(1, x.shape[-1]))
        mean = np.asarray(np.add.reduce(wide, -1) / size)
        y = wide - mean[..., None]
        squares = np.add.reduce(np.square(y), -1) / size
        factors = np.asarray(1 / np.sqrt(squares + wide.dtype.type(epsilon)))
        y *= factors[..., None]
        y *= widen(gain)
        y += widen(offset)
        return y.astype(x.dtype, copy=False), mean, factors

    return of_dense(normalise)


@kernel("Partita>LayerNormGrad")
def layer_norm_grad(node: Construction) -> Kernel:
    """With n = (x - mean) r, h = d_y gain: d_x = r (h - mean(h) - n mean(h n)); sums of d_y n and d_y over rows."""
    check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])

    def gradient(
        x: Array, gain: Array, mean: Array, inverse_deviation: Array, d_y: Array
    ) -> tuple[Array, Array, Array]:
        check_gain(x, gain)
        check_rows(x, {"mean": mean, "inverse_deviation": inverse_deviation}, d_y)
        factors, slopes = inverse_deviation[..., None], widen(d_y)
        normal = (widen(x) - mean[..., None]) * factors
        d_gain, d_offset = rows_summed(slopes * normal, gain.dtype), rows_summed(slopes, gain.dtype)
        d_normal = slopes * widen(gain)
        size = normal.dtype.type(max(1, x.shape[-1]))
        means = np.add.reduce(d_normal * normal, -1, keepdims=True) / size
        d_normal -= np.add.reduce(d_normal, -1, keepdims=True) / size
        d_normal -= normal * means
        d_normal *= factors
        return d_normal.astype(x.dtype, copy=False), d_gain, d_offset

    return of_dense(gradient)
