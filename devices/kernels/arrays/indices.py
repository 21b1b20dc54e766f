"""Reads the small integer inputs of array kernels (shapes, axes, multiples, permutations) as Python integers.

Also what array kernels ask of indices, and which indices the elements of rows have.
"""

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


def rows_and_steps(sizes: Array) -> tuple[Array, Array]:
    """For each element of rows of these sizes its row, and its place in the row."""
    rows = np.arange(len(sizes)).repeat(sizes)
    ends = np.add.accumulate(sizes)
    return rows, np.arange(len(rows)) - (ends - sizes)[rows]


def run_starts(ordered: Array) -> Array:
    """Where each run of equal numbers of a vector begins."""
    is_start = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_start[1:])
    return is_start.nonzero()[0]
