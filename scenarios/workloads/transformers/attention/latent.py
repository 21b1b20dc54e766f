"""Latent attention: queries, keys and values come out of narrow vectors (DeepSeek V2: arXiv 2405.04434, section 2.1).

    x [own rows, hidden] --query_down--> q_rank --norm, query_up--> (nope | rope) of each of the rank's heads
                         --key_value_down--> kv_rank | rope
                              kv_rank --norm--> narrow --key_up, value_up--> nope, value of each of the rank's heads
                              rope: one head that all share

    query = nope | turned rope        key = nope | turned shared rope        values have a size of their own

The narrow vectors are computed of own rows by weights that all ranks of tp have; their products with the rank's columns
follow. With sequence parallelism it is the narrow vectors that are gathered. Turned pairs stay where they are, as in
DeepSeek's code. Transformers moves them to halves, in queries and keys alike, which changes no score. With `q_rank` 0
queries are a product with x.

For inference the cache has a row narrow | turned shared rope for each token, and no heads. A token that is decoded
reads it once for all heads: key_up goes to the side of queries, and value_up behind the sum, which changes no value.

    nope @ (narrow @ key_up)' = (nope @ key_up') @ narrow'
    shares @ (narrow @ value_up) = (shares @ narrow) @ value_up
"""

from __future__ import annotations

from typing import NamedTuple

from .....graph.builder.handles import Tensor
from ....models.moe import LatentAttention, MoeModel
from ..network import RankNetwork
from ..norms import rms_norm
from ..products import column, entered, row
from .core import AttentionKind
from .key_value_cache import attended_to_rows, store_rows, with_row
from .layer import core, share_of
from .rotary import rotary_tables, rotated


def latent_attention(network: RankNetwork, x: Tensor, model: MoeModel, latent: LatentAttention) -> Tensor:
    """Attention of own rows x [own rows, hidden] to those before them: [own rows, hidden]."""
    sizes = latent.query_size, latent.value_size
    kind = share_of(network, AttentionKind(model.heads, model.heads, *sizes, causal=True, scale=model.softmax_scale))
    weights = _Weights(network, model, latent)
    query, rows = weights.query(x), weights.narrow(x)
    mixed = (
        _decoded(network, query, rows, weights, kind)
        if network.decodes
        else _whole(network, query, rows, weights, kind)
    )
    return row(network, mixed, "output", (model.heads * latent.value_size, model.hidden), bias=False)


class _Turned(NamedTuple):
    """Two parts of queries, or of what keys are made of."""

    plain: Tensor
    """[length, batch, heads, nope] of queries; narrow vectors [rows, kv_rank]"""
    turned: Tensor
    """[length, batch, heads, rope]; of keys one head"""


class _Weights:
    """The products of a layer, and what they are made with."""

    def __init__(self, network: RankNetwork, model: MoeModel, latent: LatentAttention) -> None:
        self.network, self.model, self.latent = network, model, latent
        self.heads: int = model.heads // network.tp
        self._tables = rotary_tables(network, model.rope.frequencies(latent.rope_size), model.rope.attention_scale)

    def query(self, x: Tensor) -> _Turned:
        """The queries of the rank's heads."""
        network, latent, width = self.network, self.latent, self.model.hidden
        if latent.q_rank:
            narrow = self._down(x, "query_down", latent.q_rank)
            x, width = rms_norm(network, narrow, latent.q_rank, "query_norm", latent.epsilon), latent.q_rank
        shape = (width, self.model.heads * latent.query_size)
        flat = column(network, entered(network, x), "query_up", shape, bias=False)
        heads = network.heads(flat, self.heads, latent.query_size)
        plain, turning = self._parted(heads, latent.nope_size, latent.rope_size)
        return _Turned(plain, self._rotated(turning))

    def narrow(self, x: Tensor) -> _Turned:
        """What keys and values of all rows are made of."""
        network, latent = self.network, self.latent
        joined = self._down(x, "key_value_down", latent.kv_rank + latent.rope_size)
        narrow, turning = self._parted(joined, latent.kv_rank, latent.rope_size)
        narrow = rms_norm(network, narrow, latent.kv_rank, "key_value_norm", latent.epsilon)
        shared = network.heads(entered(network, turning), 1, latent.rope_size)
        return _Turned(entered(network, narrow), self._rotated(shared))

    def up(self, name: str, size: int) -> Tensor:
        """The weights "key_up" or "value_up" of the rank's heads: [kv_rank, heads * size]."""
        rank = self.latent.kv_rank
        return self.network.matrix(f"{name}/weights", (rank, self.model.heads * size), rank, split=1)

    def _down(self, x: Tensor, name: str, size: int) -> Tensor:
        hidden = self.model.hidden
        weights = self.network.matrix(f"{name}/weights", (hidden, size), hidden)
        return self.network.product(x, weights, f"{name}/product")

    def _parted(self, x: Tensor, first: int, second: int) -> tuple[Tensor, Tensor]:
        """The first elements of the last axis of x, and the others."""
        parts = self.network.b.op("SplitV", x, [first, second], -1, num_split=2)
        return parts[0], parts[1]

    def _rotated(self, x: Tensor) -> Tensor:
        return rotated(self.network, x, self._tables, self.latent.rope_size, interleaved=self.latent.interleaved)


def _whole(network: RankNetwork, query: _Turned, rows: _Turned, weights: _Weights, kind: AttentionKind) -> Tensor:
    """The attention of all tokens of the rank: [rows, heads * value]."""
    b, latent, heads = network.b, weights.latent, weights.heads
    key, value = (
        network.heads(network.product(rows.plain, weights.up(name, size), f"{name}/product"), heads, size)
        for name, size in (("key_up", latent.nope_size), ("value_up", latent.value_size))
    )
    shared = b.op("Tile", rows.turned, [1, 1, heads, 1], name="shared_by_heads")
    joined = [b.op("ConcatV2", parts, -1, name=name)[0] for name, parts in (("query", query), ("key", (key, shared)))]
    if network.sizes.cache:
        with b.scope("core"):
            store_rows(network, "narrow", _cached(network, rows, latent), 1, latent.kv_rank + latent.rope_size)
    return core(network, (joined[0], joined[1], value), kind, keeps=False)


def _decoded(network: RankNetwork, query: _Turned, rows: _Turned, weights: _Weights, kind: AttentionKind) -> Tensor:
    """The attention of one token of each sequence: [batch, heads * value]."""
    b, latent, heads, batch = network.b, weights.latent, weights.heads, network.sizes.batch
    key_up = network.reshaped(weights.up("key_up", latent.nope_size), [latent.kv_rank, heads, latent.nope_size])
    value_up = network.reshaped(weights.up("value_up", latent.value_size), [latent.kv_rank, heads, latent.value_size])
    plain = network.reshaped(query.plain, [batch, heads, latent.nope_size])
    asked = b.op("Einsum", [plain, key_up], equation="bhn,khn->bhk", name="query/narrow")
    size = latent.kv_rank + latent.rope_size
    turned = network.reshaped(query.turned, [batch, heads, latent.rope_size])
    whole = b.op("ConcatV2", [asked, turned], -1, name="query")[0]
    with b.scope("core"):
        cached = with_row(network, "narrow", _cached(network, rows, latent), 1, size)
        of_rows = kind._replace(kv_heads=1, size=size, value_size=latent.kv_rank)
        attended = attended_to_rows(network, whole, (cached,), of_rows)
        narrow = network.reshaped(attended, [batch, heads, latent.kv_rank])
    mixed = b.op("Einsum", [narrow, value_up], equation="bhk,khv->bhv", name="mixed")[0]
    return network.reshaped(mixed, [batch, heads * latent.value_size])


def _cached(network: RankNetwork, rows: _Turned, latent: LatentAttention) -> Tensor:
    """The rows of the cache: [length, batch, 1, kv_rank + rope]."""
    narrow = network.heads(rows.plain, 1, latent.kv_rank)
    return network.b.op("ConcatV2", [narrow, rows.turned], -1, name="row")[0]
