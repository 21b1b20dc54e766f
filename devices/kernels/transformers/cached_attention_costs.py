"""Cost of attention of one query of each sequence to a cache. No value exists on the clock: the cache is full.

All rows of keys and values are read once, or those of a window, at the bandwidth of the memory: kernels for a single
query share out the rows over the whole device (Dao et al., Flash-Decoding, 2023).
"""

from __future__ import annotations

from ..op_cost import CostContext, bytes_moved, flops, output_bytes


def _seen(c: CostContext) -> int:
    """The rows that a query sees."""
    rows, window = c.inputs[1][2], int(c.attrs["window"])
    return min(rows, window) if window else rows


@flops("Partita>CachedAttention", matrix="attention")
def cached_attention(c: CostContext) -> int:
    """The product of a query with each row that it sees, and of what becomes of it with the row's value."""
    batch, heads, depth = c.inputs[0]
    return 2 * batch * heads * _seen(c) * (depth + c.outputs[0][2])


@bytes_moved("Partita>CachedAttention")
def cached_attention_bytes(c: CostContext) -> int:
    """Queries and outputs, and the rows that are seen; the position is an argument of the kernel."""
    rows = c.inputs[1][2]
    seen = sum(c.bytes_in(port) // rows * _seen(c) for port in range(1, len(c.inputs) - 1)) if rows else 0
    return c.bytes_in(0) + seen + output_bytes(c)
