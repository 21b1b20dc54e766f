"""Keys and values of earlier tokens in variables, for inference: written in place, read where they are.

    sizes.cache = 8192      rows of the cache, for tokens 0 to 8191 of each sequence
    prefill                 tokens 0 to n - 1 are computed at once; their keys and values become rows 0 to n - 1
    decode                  one token of each sequence, at the number in the variable "position": its keys and values
                            become that row, attention reads the rows up to it, and the position goes up by one

    layer_0/attention/core/key/variable     VarHandleOp [batch, kv heads of the rank, cache, size]

One op reads the variables as they are and sees the rows up to the position. In TensorFlow's ops products read all rows,
and those behind the position are masked. On the clock, where no position has a value, the cache is full. A stage has
its own position, on the host; it starts at 0, or behind what prefill wrote.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....graph.builder.handles import Operation, Tensor
from ..network import RankNetwork
from .core import AttentionKind


def store(network: RankNetwork, key: Tensor, value: Tensor, kind: AttentionKind) -> None:
    """Writes keys and values [length, batch, heads, size] of the first tokens of each sequence."""
    store_rows(network, "key", key, kind.kv_heads, kind.size)
    store_rows(network, "value", value, kind.kv_heads, kind.value_size)


def store_rows(network: RankNetwork, name: str, x: Tensor, heads: int, size: int) -> None:
    """Writes x [length, batch, heads, size], of the first tokens of each sequence, into a cache of that name."""
    rows = network.transposed(x, [1, 2, 0, 3], f"{name}/rows")
    begin, end = _place(network, 0, "begin"), _place(network, network.length, "end")
    written = _written(network, _cache(network, name, heads, size), rows, begin, end)
    network.writes.append((network.program.stage, written))


def attended_in_cache(network: RankNetwork, qkv: tuple[Tensor, Tensor, Tensor], kind: AttentionKind) -> Tensor:
    """The attention of one token of each sequence to itself and those before it: [1, batch, heads, value size]."""
    query, key, value = qkv
    keys = with_row(network, "key", key, kind.kv_heads, kind.size)
    values = with_row(network, "value", value, kind.kv_heads, kind.value_size)
    return attended_to_rows(network, query, (keys, values), kind)


def attended_to_rows(network: RankNetwork, query: Tensor, rows: Sequence[Tensor], kind: AttentionKind) -> Tensor:
    """The attention of one token of each sequence to rows of a cache: [1, batch, heads, value size].

    `rows` are keys and values, or keys alone whose first `kind.value_size` elements are the values.
    """
    b, batch = network.b, network.sizes.batch
    if network.sizes.fused:
        output = b.op(
            "Partita>CachedAttention",
            network.reshaped(query, [batch, kind.heads, kind.size]),
            list(rows),
            network.position,
            name="attention",
            scale=kind.scale,
            window=kind.window,
            value_size=0 if len(rows) > 1 else kind.value_size,
        )[0]
        return network.reshaped(output, [1, batch, kind.heads, kind.value_size])
    grouped = network.reshaped(query, [batch, kind.kv_heads, kind.heads // kind.kv_heads, kind.size])
    products = b.op("BatchMatMulV2", grouped, rows[0], adj_y=True, name="scores")[0]
    sees = network.once(f"sees_{kind.window}", lambda: _sees(network, kind))
    scores = b.op("SelectV2", sees, network.wide(products) * kind.factor, -np.inf, name="masked")
    shares = network.cast(b.op("Softmax", scores, name="softmax")[0], rows[0].dtype)
    output = b.op("BatchMatMulV2", shares, rows[-1], name="attended")[0]
    if len(rows) == 1:
        output = b.op("Slice", output, [0, 0, 0, 0], [-1, -1, -1, kind.value_size], name="values")[0]
    return network.reshaped(output, [1, batch, kind.heads, kind.value_size])


def _sees(network: RankNetwork, kind: AttentionKind) -> Tensor:
    """Which rows of the cache the token at the position sees, bool [cache]."""
    b = network.b
    ago = b.op("Sub", network.position, b.op("Range", 0, network.sizes.cache, 1), name="ago")[0]
    sees = b.op("GreaterEqual", ago, 0, name="sees")[0]
    if not kind.window:
        return sees
    return b.op("LogicalAnd", sees, b.op("Less", ago, kind.window), name="sees_window")[0]


def with_row(network: RankNetwork, name: str, x: Tensor, heads: int, size: int) -> Tensor:
    """The whole cache with x [1, batch, heads, size] as the row at the position: [batch, heads, cache, size]."""
    handle = _cache(network, name, heads, size)
    row = network.reshaped(x, [network.sizes.batch, heads, 1, size])
    begin = network.once("row_begin", lambda: _place(network, network.position, "begin"))
    behind = network.once("row_end", lambda: _place(network, network.position + 1, "end"))
    written = _written(network, handle, row, begin, behind)
    return network.b.op("ReadVariableOp", handle, dtype=x.dtype, name=f"{name}/read", control=[written])[0]


def _cache(network: RankNetwork, name: str, heads: int, size: int) -> Tensor:
    shape = (network.sizes.batch, heads, network.sizes.cache, size)
    return network.parameters.state(name, shape, network.parameters.compute_type)


def _place(network: RankNetwork, row: Tensor | int, name: str) -> Tensor:
    """The index of a row in a cache."""
    return network.b.op("Pack", [0, 0, row, 0], name=name)[0]


def _written(network: RankNetwork, handle: Tensor, rows: Tensor, begin: Tensor, end: Tensor) -> Operation:
    """Writes rows [batch, heads, end - begin, size] into a cache."""
    masks = {"begin_mask": 0b1011, "end_mask": 0b1011}  # all of the axes but that of rows
    strides = [1, 1, 1, 1]
    return network.b.op("ResourceStridedSliceAssign", handle, begin, end, strides, rows, name="written", attrs=masks)
