"""Attention itself: softmax(q k' * scale) v of heads that a rank has, over keys that it has.

    query [s_q, batch, heads, size], key [s_k, batch, kv_heads, size], value [s_k, batch, kv_heads, value size]
        -> output [s_q, batch, heads, value size], logsumexp [batch, heads, s_q]

Query heads share key-value heads in order: heads / kv_heads neighbours have the same. The logsumexp of the scores of a
row says how much weight the row gave in all, so that outputs over several parts of the keys can be joined.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from .....graph.builder.handles import Tensor
from ..network import RankNetwork, wide_type


class AttentionKind(NamedTuple):
    """What is computed of queries, keys and values."""

    heads: int
    """query heads, of the whole model or of the tensors at hand"""
    kv_heads: int
    size: int
    value_size: int
    causal: bool
    window: int = 0
    """how many tokens a token sees, itself included; 0 for all"""
    scale: float = 0.0
    """what scores are multiplied by; 0 for 1 / sqrt(size)"""

    @property
    def factor(self) -> float:
        """What scores are multiplied by: `scale` as an attr of the op has it, in float32."""
        return float(np.float32(self.scale)) or 1 / sqrt(self.size)


class Attended(NamedTuple):
    """The output of attention, and the logsumexp of the scores of each row."""

    output: Tensor
    logsumexp: Tensor


def attended(
    network: RankNetwork,
    qkv: tuple[Tensor, Tensor, Tensor],
    kind: AttentionKind,
    lengths: tuple[int, int],
    *,
    query_offset: int = 0,
) -> Attended:
    """Attention of queries to keys that are there, `kind.heads` of them and `lengths` of queries and keys.

    For the causal mask the first query is at position `query_offset` of the keys.
    """
    if not network.sizes.fused:
        return _spelled(network, qkv, kind, lengths, query_offset)
    output, logsumexp = network.b.op(
        "Partita>FlashAttention",
        *qkv,
        name="attention",
        U=wide_type(qkv[0].dtype),
        causal=kind.causal,
        window=kind.window,
        scale=kind.scale,
        query_offset=query_offset,
        sequence_first=True,
    )
    return Attended(output, logsumexp)


def _spelled(
    network: RankNetwork,
    qkv: tuple[Tensor, Tensor, Tensor],
    kind: AttentionKind,
    lengths: tuple[int, int],
    query_offset: int,
) -> Attended:
    """In TensorFlow's ops, with the scores of all pairs: axes b(atch), q(ueries), t(okens), k(v heads), g(roup)."""
    b = network.b
    query, key, value = qkv
    batch, group = network.sizes.batch, kind.heads // kind.kv_heads
    grouped = network.reshaped(query, [lengths[0], batch, kind.kv_heads, group, kind.size])
    products = b.op("Einsum", [grouped, key], equation="qbkgd,tbkd->bkgqt", name="scores")[0]
    scores = _masked(network, network.wide(products) * kind.factor, kind, lengths, query_offset)
    most = b.op("StopGradient", b.op("Max", scores, [-1], keep_dims=True, name="most"))
    weights = b.op("Exp", b.op("Sub", scores, most), name="weights")
    total = b.op("Sum", weights, [-1], keep_dims=True, name="total")
    shares = network.cast(b.op("RealDiv", weights, total, name="softmax")[0], value.dtype)
    output = b.op("Einsum", [shares, value], equation="bkgqt,tbkd->qbkgd", name="mixed")[0]
    logsumexp = b.op("AddV2", b.op("Log", total), most, name="logsumexp")[0]
    return Attended(
        network.reshaped(output, [lengths[0], batch, kind.heads, kind.value_size]),
        network.reshaped(logsumexp, [batch, kind.heads, lengths[0]]),
    )


def _masked(
    network: RankNetwork, scores: Tensor, kind: AttentionKind, lengths: tuple[int, int], query_offset: int
) -> Tensor:
    """Scores, minus infinity for keys behind the query or further before it than the window."""
    if not kind.causal:
        return scores
    b = network.b
    queries = network.reshaped(b.op("Range", query_offset, query_offset + lengths[0], 1)[0], [lengths[0], 1])
    ago = queries - b.op("Range", 0, lengths[1], 1)[0]
    sees = b.op("GreaterEqual", ago, 0, name="sees")[0]
    if kind.window:
        sees = b.op("LogicalAnd", sees, b.op("Less", ago, kind.window))[0]
    return b.op("SelectV2", sees, scores, -np.inf, name="masked")[0]
