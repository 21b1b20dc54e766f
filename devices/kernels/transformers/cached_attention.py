"""Attention of one query of each sequence to the rows of a cache, up to a position.

position 2 of a cache of 6 rows      rows 0, 1, 2 are seen; with a window of 2 rows 1, 2

The blocks of attention compute it, over views of the rows that are seen: the cache is not copied.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from ....graph.ops.transformers.attention_sizes import VisibleKeys
from ....graph.ops.transformers.cached_attention_shapes import cached_sizes
from ..half_types import widen
from ..registry import Construction, Kernel, kernel
from .attention_blocks import Heads, attend


@kernel("Partita>CachedAttention")
def cached_attention(node: Construction) -> Kernel:
    """The output of the query at a position; a position outside of the cache is refused."""
    window, value_size, scale = (node.attrs[name] for name in ("window", "value_size", "scale"))

    def attention(query: Array, *others: Array) -> Array:
        *tensors, position = others
        sizes = cached_sizes(query.shape, [tensor.shape for tensor in tensors], value_size)
        at, rows = int(position), tensors[0].shape[2]
        if not 0 <= at < rows:
            raise InvalidArgumentError(
                f"position {at} is outside of the {rows} rows of the cache: sequences that go on so long need more"
            )
        first = max(0, at - window + 1) if window else 0
        keys = _seen(tensors[0], first, at + 1)
        values = _seen(tensors[-1], first, at + 1)[..., : sizes.value_size]
        batch, heads, depth = query.shape
        factor = float(scale) or 1 / sqrt(max(depth, 1))
        grouped = np.array(widen(query)).reshape(len(keys), -1, 1, depth)
        grouped *= grouped.dtype.type(factor)
        output, _ = attend(Heads(grouped, keys, values, VisibleKeys(None, None), factor))
        return np.ascontiguousarray(output.reshape(batch, heads, -1), query.dtype)

    return attention


def _seen(tensor: Array, first: int, end: int) -> Array:
    """The rows [batch * kv_heads, end - first, elements] of a cache, in the type that computes."""
    batch, kv_heads, rows, size = tensor.shape
    return widen(tensor.reshape(batch * kv_heads, rows, size)[:, first:end])
