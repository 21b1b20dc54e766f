"""Rotary positions (Su et al., RoFormer, 2021): pairs of elements of a head are turned by the angle of the position.

    (a, b)  ->  (a cos - b sin, b cos + a sin)          inverse: the sines change their sign

Pairs are (i, i + r / 2) as in Llama's checkpoints of Hugging Face, or neighbours as in RoFormer and DeepSeek.
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array
from ....graph.ops.transformers.rotary_sizes import rotary_shape
from ..half_types import widen
from ..registry import Construction, Kernel, kernel


@kernel("Partita>Rotary")
def rotary(node: Construction) -> Kernel:
    """x with its first r elements of each head turned; half types are turned in float32 and rounded once."""
    sequence_first, inverse = bool(node.attrs["sequence_first"]), bool(node.attrs["inverse"])
    interleaved = bool(node.attrs["interleaved"])

    def turn(x: Array, cosines: Array, sines: Array) -> Array:
        rotary_shape(x.shape, cosines.shape, sines.shape, sequence_first=sequence_first)
        half = cosines.shape[1]
        first, second = (
            (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(half), slice(half, 2 * half))
        )
        cos, sin = (_spread(widen(table), sequence_first=sequence_first) for table in (cosines, sines))
        a, b = widen(x[..., first]), widen(x[..., second])
        y = np.array(x, order="C")
        if inverse:
            sin = -sin
        y[..., first] = a * cos - b * sin
        y[..., second] = b * cos + a * sin
        return y

    return turn


def _spread(table: Array, *, sequence_first: bool) -> Array:
    """A table [s, r / 2] with axes for batch and heads."""
    return table[:, None, None] if sequence_first else table[None, :, None]
