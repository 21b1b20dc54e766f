"""Cost of attention of one query of each sequence to a cache. No value exists on the clock: the cache is full.

All rows of keys and values are read once, or those of a window, at the bandwidth of the memory: kernels for a single
query share out the rows over the whole device (Dao et al., Flash-Decoding, 2023).
"""

from __future__ import annotations

from math import prod

from ..op_cost import CostContext, bytes_moved, flops, layers, output_bytes
from ..op_forms import Layer

LATENT, ROTARY = 512, 64
"""numbers of a row of latent attention whose kernels were measured: the first are keys and values, the last keys"""
_HALF = 2
"""bytes of an element of the caches that were measured"""


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


@layers("Partita>CachedAttention")
def cached_attention_layer(c: CostContext) -> Layer | None:
    """Grouped heads with keys and values of one width, or latent rows of `LATENT` + `ROTARY`; 16-bit rows alone."""
    (batch, heads, depth), (_, kv_heads, rows, _) = c.inputs[0], c.inputs[1]
    elements = prod(c.inputs[1])
    if not elements or not batch * heads or c.bytes_in(1) != _HALF * elements:
        return None
    value_size = c.outputs[0][2]
    if len(c.inputs) == len(("query", "keys", "values", "position")):
        sizes = {"batch": batch, "context": rows, "heads": heads, "kv_heads": kv_heads, "head_dim": depth}
        return Layer("decode_attention", "decode", {**sizes, "window": _seen(c)}) if value_size == depth else None
    is_latent = (kv_heads, depth, value_size) == (1, LATENT + ROTARY, LATENT) and _seen(c) == rows
    sizes = {"batch": batch, "context": rows, "heads": heads}
    return Layer("latent_decode", "decode", sizes) if is_latent else None
