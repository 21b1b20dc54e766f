"""Self-attention of a layer: heads split over the ranks of tp, the sequence over those of cp.

    x [own rows, hidden] --entered--> queries, keys and values of the rank's heads --> attention --row--> the same

A rank of tp has heads / tp query heads and kv_heads / tp key-value heads. Where these are fewer than ranks, each rank
has the whole weights of keys and values and computes the one head that its query heads read.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from .....errors import InvalidArgumentError
from .....graph.builder.handles import Tensor
from .....graph.dtypes import Array
from ....models.nearest import nearest_divisors, or_text
from ..network import RankNetwork
from ..products import Rows, before, column_of, row
from .core import AttentionKind, attended
from .exchanged_heads import attended_by_heads
from .key_value_cache import attended_in_cache, store
from .ring import attended_in_ring
from .rotary import rotary_tables, rotated


class Turning(NamedTuple):
    """Rotary positions: radians per position for each pair of elements, and what the tables are multiplied by."""

    frequencies: Array
    scale: float = 1.0


class AttentionLayer(NamedTuple):
    """What a layer's attention is made of."""

    hidden: int
    kind: AttentionKind
    qkv_bias: bool
    output_bias: bool
    turning: Turning | None = None


def self_attention(network: RankNetwork, x: Tensor, layer: AttentionLayer) -> Tensor:
    """The attention of x [own rows, hidden], projected back: [own rows, hidden]."""
    kind = share_of(network, layer.kind)
    products = [
        column_of(network, "query", (layer.hidden, layer.kind.heads * kind.size), bias=layer.qkv_bias),
        _key_or_value(network, "key", layer, kind.size),
        _key_or_value(network, "value", layer, kind.value_size),
    ]
    query, key, value = before(network, x, lambda rows: [product(rows) for product in products])
    heads = [
        network.heads(query, kind.heads, kind.size),
        network.heads(key, kind.kv_heads, kind.size),
        network.heads(value, kind.kv_heads, kind.value_size),
    ]
    if layer.turning is not None:
        tables = rotary_tables(network, layer.turning.frequencies, layer.turning.scale)
        heads[:2] = (rotated(network, each, tables, kind.size) for each in heads[:2])
    mixed = core(network, (heads[0], heads[1], heads[2]), kind)
    return row(network, mixed, "output", (layer.kind.heads * kind.value_size, layer.hidden), bias=layer.output_bias)


def core(
    network: RankNetwork, qkv: tuple[Tensor, Tensor, Tensor], kind: AttentionKind, *, keeps: bool = True
) -> Tensor:
    """Attention of the rank's heads and tokens [length, batch, heads, size]: rows [rows, heads * value size].

    The nodes are in a scope "core": what selective recomputation computes again. Without `keeps` a beginning leaves
    nothing in the cache.
    """
    if network.sizes.cache and not kind.causal:
        raise InvalidArgumentError("a model whose tokens see those behind them has nothing to keep; use cache=0")
    with network.b.scope("core"):
        if network.decodes:
            output = attended_in_cache(network, qkv, kind)
        elif network.cp == 1:
            output = attended(network, qkv, kind, (network.length, network.length)).output
        elif network.split.cp_kind == "ring":
            output = attended_in_ring(network, qkv, kind)
        else:
            output = attended_by_heads(network, qkv, kind)
        if keeps and network.sizes.cache and not network.decodes:
            store(network, *qkv[1:], kind)
    return network.reshaped(output, [network.rows, kind.heads * kind.value_size], "mixed")


def share_of(network: RankNetwork, kind: AttentionKind) -> AttentionKind:
    """The heads that a rank of tp has; InvalidArgumentError if they cannot be shared out."""
    tp = network.tp
    if kind.heads % tp:
        near = or_text(nearest_divisors(tp, kind.heads))
        raise InvalidArgumentError(f"{kind.heads} heads cannot be shared out over tp={tp}; choose {near}")
    if not _fit(kind.kv_heads, tp):
        near = ", ".join(str(n) for n in range(1, kind.heads + 1) if kind.heads % n == 0 and _fit(kind.kv_heads, n))
        raise InvalidArgumentError(
            f"{kind.kv_heads} key-value heads are neither divisor nor multiple of tp={tp}; choose one of {near}"
        )
    return kind._replace(heads=kind.heads // tp, kv_heads=max(1, kind.kv_heads // tp))


def _fit(kv_heads: int, ranks: int) -> bool:
    return kv_heads % ranks == 0 or ranks % kv_heads == 0


def _key_or_value(network: RankNetwork, name: str, layer: AttentionLayer, size: int) -> Rows:
    """Makes the keys, or the values, of the rank's heads of some rows: [.., heads * size]."""
    shape = (layer.hidden, layer.kind.kv_heads * size)
    if layer.kind.kv_heads >= network.tp:
        return column_of(network, name, shape, bias=layer.qkv_bias)
    b = network.b
    first = _shared_head(network, layer.kind.kv_heads, size)
    weights = network.parameters.weight(f"{name}/weights", shape, scale=sqrt(3 / layer.hidden), partial_over=("tp",))
    part = b.op("Slice", weights, b.op("Pack", [0, first]), [layer.hidden, size], name=f"{name}/part")[0]
    if not layer.qkv_bias:
        return lambda x: network.product(x, part, f"{name}/product")
    bias = network.parameters.weight(f"{name}/bias", (shape[1],), start=0.0, partial_over=("tp",))
    own = b.op("Slice", bias, b.op("Pack", [first]), [size], name=f"{name}/bias_part")
    return lambda x: b.op("BiasAdd", network.product(x, part, f"{name}/product"), own, name=f"{name}/out")[0]


def _shared_head(network: RankNetwork, kv_heads: int, size: int) -> Tensor:
    """The first element of the head that the rank shares with its neighbours, an int32 scalar."""
    sharers = network.tp // kv_heads
    head = network.b.op("FloorDiv", network.program.position("tp"), sharers, name="head")
    return network.b.op("Mul", head, size)[0]
