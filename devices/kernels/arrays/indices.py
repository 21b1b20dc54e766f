"""Reads the small integer inputs of array kernels (shapes, axes, multiples, permutations) as Python integers."""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array


def sizes_of(x: Array, refusal: str = "shape must be a vector of {int32,int64}, got shape {}") -> list[int]:
    """The values of a vector of sizes.

    InvalidArgumentError for another rank (`refusal`, with the input's shape at `{}`) or a negative size.
    """
    if x.ndim != 1:
        raise InvalidArgumentError(refusal.replace("{}", shape_text(x.shape)))
    sizes: list[int] = x.tolist()
    if sizes and min(sizes) < 0:
        raise InvalidArgumentError(f"Dimension {min(sizes)} must be >= 0")
    return sizes


def is_any_outside(indices: Array, limit: int) -> bool:
    """Whether an integer tensor has an element that is not in [0, limit)."""
    if not indices.size:
        return False
    unsigned = indices.view(f"u{indices.itemsize}")  # as which the negative ones are the largest
    return bool(np.maximum.reduce(unsigned, None) >= limit)
