"""Self-attention of a layer: heads split over the ranks of tp, the sequence over those of cp.

    x [own rows, hidden] --entered--> queries, keys and values of the rank's heads --> attention --row--> the same

A rank of tp has heads / tp query heads and kv_heads / tp key-value heads; where these are fewer than ranks, one.
"""

from __future__ import annotations

from typing import NamedTuple

from .....errors import InvalidArgumentError
from .....graph.builder.handles import Tensor
from .....graph.dtypes import Array
from ....models.nearest import nearest_divisors, or_text
from ..network import RankNetwork
from ..products import before, row
from .core import AttentionKind, attended
from .exchanged_heads import attended_by_heads
from .key_value_cache import attended_in_cache, store
from .query_key_value import query_key_value
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
    joint = query_key_value(network, layer.hidden, layer.kind, kind, bias=layer.qkv_bias)
    heads = list(joint.heads(before(network, x, joint.products)))
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
