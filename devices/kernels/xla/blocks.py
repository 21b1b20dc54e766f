"""Arrays cut into blocks along all axes, and joined again; arrays of a size that is known only when the graph runs.

[[0, 1, 2],   num_splits [1, 2], paddings [0, 1]      [[0, 1],   and   [[2, 0],
 [3, 4, 5]]                                             [3, 4]]          [5, 0]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....graph.dtypes import Array
from ....graph.ops.xla.blocks import Blocks
from ..checks import require, scalar_of
from ..registry import Construction, Kernel, kernel, outputs, simple


@kernel("XlaSplitND")
def split_nd(node: Construction) -> Kernel:
    """The blocks, the last axis first; zeros fill up what the array lacks."""
    count = len(node.output_types)

    def split(x: Array) -> object:
        blocks = Blocks.of(node.attrs, "num_splits", x.ndim, count)
        sizes = blocks.block(x.shape)
        padded = np.pad(x, [(0, width) for width in blocks.paddings])
        starts = _starts(blocks.counts, sizes)
        return outputs([padded[_slices(start, sizes)] for start in starts])

    return split


@kernel("XlaConcatND")
def concat_nd(node: Construction) -> Kernel:
    """The array of the blocks, without the ends of axes that are padding."""

    def join(*parts: Array) -> Array:
        blocks = Blocks.of(node.attrs, "num_concats", parts[0].ndim, len(parts))
        sizes = parts[0].shape
        require(all(part.shape == sizes for part in parts), "All inputs must have the same shape.")
        whole = blocks.whole(sizes)
        result = np.empty([size + width for size, width in zip(whole, blocks.paddings, strict=True)], parts[0].dtype)
        for start, part in zip(_starts(blocks.counts, sizes), parts, strict=True):
            result[_slices(start, sizes)] = part
        return result[_slices([0] * len(whole), whole)]

    return join


def _starts(counts: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Where the blocks begin."""
    return [[n * size for n, size in zip(place, sizes, strict=True)] for place in np.ndindex(*counts)]


def _slices(start: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple([slice(first, first + size) for first, size in zip(start, sizes, strict=True)])


def set_dynamic_size(x: Array, axis: Array, size: Array) -> Array:
    """The first elements along an axis."""
    number, count = scalar_of(axis, "dim_index"), scalar_of(size, "size")
    require(0 <= number < x.ndim, f"dim_index must be in [0, {x.ndim}), got {number}")
    require(0 <= count <= x.shape[number], f"size must be at most {x.shape[number]}, got {count}")
    return x[(slice(None),) * number + (slice(count),)]


simple("XlaSetDynamicDimensionSize", set_dynamic_size)
simple("XlaSetBound", lambda x, _bound: x)
