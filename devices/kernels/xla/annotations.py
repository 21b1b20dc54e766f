"""Ops that tell the compiler something and pass tensors on, change their precision, or line up their ranks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require, vector_of
from ..half_types import BFLOAT16, widen
from ..registry import Construction, Kernel, kernel, outputs, simple

_BITS = {np.dtype(np.float16): (5, 10), BFLOAT16: (8, 7), np.dtype(np.float32): (8, 23), np.dtype(np.float64): (11, 52)}
"""bits of exponent and mantissa, by type"""

simple("XlaSharding", lambda x: x)
simple("XlaOptimizationBarrier", lambda *tensors: outputs(tensors))


def broadcast_helper(left: Array, right: Array, axes: Array) -> tuple[Array, Array]:
    """Both operands; the one of lower rank gets sizes of one, so that its axes become `axes` of the other."""
    places = vector_of(axes, "broadcast_dims")
    if not places:
        require(
            left.ndim == right.ndim or 0 in (left.ndim, right.ndim),
            "If broadcast_dims is empty, both arguments must have equal rank; argument shapes, or at least one "
            f"argument must be a scalar: {shape_text(left.shape)} and {shape_text(right.shape)}",
        )
        return left, right
    narrow, wide = sorted((left, right), key=lambda x: x.ndim)
    require(
        len(places) == narrow.ndim,
        f"broadcast_dims must have size equal to the smaller argument rank; broadcast_dims has {len(places)} "
        f"elements and the smaller rank is {narrow.ndim}",
    )
    require(
        all(0 <= a < wide.ndim for a in places) and all(a < b for a, b in pairwise(places)),
        f"broadcast_dims must be strictly increasing axes of the larger argument: {places}",
    )
    sizes = [1] * wide.ndim
    for place, size in zip(places, narrow.shape, strict=True):
        sizes[place] = size
    stretched = narrow.reshape(sizes)
    return (stretched, right) if left.ndim < right.ndim else (left, stretched)


simple("XlaBroadcastHelper", broadcast_helper)


@kernel("XlaReducePrecision")
def reduce_precision(node: Construction) -> Kernel:
    """The nearest number with that many bits in exponent and mantissa, ties to even.

    What is too large becomes infinite, what is below the smallest normal number becomes zero, NaN stays.
    """
    exponent_bits, mantissa_bits = int(node.attrs["exponent_bits"]), int(node.attrs["mantissa_bits"])
    require(exponent_bits >= 1, "exponent_bits must be positive")
    bias = (1 << exponent_bits - 1) - 1

    def reduce(x: Array) -> Array:
        own_exponent_bits, own_mantissa_bits = _BITS[x.dtype]
        dropped = own_mantissa_bits - mantissa_bits
        bits = x.view(f"u{x.dtype.itemsize}")
        if dropped > 0:
            one = bits.dtype.type(1)
            last_kept = (bits >> bits.dtype.type(dropped)) & one
            half = bits.dtype.type((1 << dropped - 1) - 1)
            rounded = (bits + half + last_kept) & ~bits.dtype.type((1 << dropped) - 1)
            result = rounded.view(x.dtype)
        else:
            result = x
        _, exponents = np.frexp(widen(result).astype(np.float64, copy=False))
        if own_exponent_bits > exponent_bits:
            signed = np.copysign(np.ones_like(result), x)
            result = np.where(exponents - 1 > bias, signed * x.dtype.type(np.inf), result)
            result = np.where(exponents - 1 < 1 - bias, signed * x.dtype.type(0), result)
        return np.asarray(np.where(np.isfinite(x), result, x), x.dtype)

    return reduce
