"""Latent attention: queries, keys and values come out of narrow vectors (DeepSeek V2: arXiv 2405.04434, section 2.1).

    x [own rows, hidden] --query_down--> q_rank --norm, query_up--> (nope | rope) of each of the rank's heads
                         --key_value_down--> kv_rank | rope
                              kv_rank --norm, key_value_up--> (nope | value) of each of the rank's heads
                              rope: one head that all share

    query = nope | turned rope        key = nope | turned shared rope        values have a size of their own

The narrow vectors are computed of own rows by weights that all ranks of tp have; their products with the rank's columns
follow. With sequence parallelism it is the narrow vectors that are gathered. Turned pairs stay where they are, as in
DeepSeek's code. Transformers moves them to halves, in queries and keys alike, which changes no score. With `q_rank` 0
queries are a product with x.
"""

from __future__ import annotations

from ....graph.builder.handles import Tensor
from ...models.moe import LatentAttention, MoeModel
from .attention.core import AttentionKind
from .attention.layer import core, share_of
from .attention.rotary import rotary_tables, rotated
from .network import RankNetwork
from .norms import rms_norm
from .products import column, entered, row


def latent_attention(network: RankNetwork, x: Tensor, model: MoeModel, latent: LatentAttention) -> Tensor:
    """Attention of own rows x [own rows, hidden] to those before them: [own rows, hidden]."""
    sizes = latent.query_size, latent.value_size
    kind = AttentionKind(model.heads, model.heads, *sizes, causal=True, scale=model.softmax_scale)
    own = share_of(network, kind)
    tables = rotary_tables(network, model.rope.frequencies(latent.rope_size), model.rope.attention_scale)
    query = _query(network, x, model, latent, tables)
    key, value = _key_value(network, x, model, latent, tables)
    mixed = core(network, (query, key, value), own)
    return row(network, mixed, "output", (model.heads * latent.value_size, model.hidden), bias=False)


def _query(
    network: RankNetwork, x: Tensor, model: MoeModel, latent: LatentAttention, tables: tuple[Tensor, Tensor]
) -> Tensor:
    """[batch, length, heads of the rank, nope + rope]."""
    size, width = latent.query_size, model.hidden
    if latent.q_rank:
        narrow = _down(network, x, "query_down", width, latent.q_rank)
        x, width = rms_norm(network, narrow, latent.q_rank, "query_norm", latent.epsilon), latent.q_rank
    flat = column(network, entered(network, x), "query_up", (width, model.heads * size), bias=False)
    heads = network.heads(flat, model.heads // network.tp, size)
    plain, turning = _parted(network, heads, latent.nope_size, size)
    turned = rotated(network, turning, tables, latent.rope_size, interleaved=latent.interleaved)
    return network.b.op("ConcatV2", [plain, turned], -1, name="query")[0]


def _key_value(
    network: RankNetwork, x: Tensor, model: MoeModel, latent: LatentAttention, tables: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """[batch, length, heads of the rank, nope + rope] and [.., value]."""
    heads, rank, whole = model.heads // network.tp, latent.kv_rank, latent.kv_rank + latent.rope_size
    narrow, turning = _parted(network, _down(network, x, "key_value_down", model.hidden, whole), rank, whole)
    narrow = rms_norm(network, narrow, rank, "key_value_norm", latent.epsilon)
    size = latent.nope_size + latent.value_size
    flat = column(network, entered(network, narrow), "key_value_up", (rank, model.heads * size), bias=False)
    plain, value = _parted(network, network.heads(flat, heads, size), latent.nope_size, size)
    shared = network.heads(entered(network, turning), 1, latent.rope_size)
    turned = rotated(network, shared, tables, latent.rope_size, interleaved=latent.interleaved)
    of_all = network.b.op("Tile", turned, [1, 1, heads, 1], name="shared_by_heads")
    return network.b.op("ConcatV2", [plain, of_all], -1, name="key")[0], value


def _down(network: RankNetwork, x: Tensor, name: str, wide: int, narrow: int) -> Tensor:
    weights = network.matrix(f"{name}/weights", (wide, narrow), wide)
    return network.b.op("MatMul", x, weights, name=f"{name}/product")[0]


def _parted(network: RankNetwork, x: Tensor, first: int, whole: int) -> tuple[Tensor, Tensor]:
    """The first elements of the last axis of x, and the others."""
    parts = network.b.op("SplitV", x, [first, whole - first], -1, num_split=2)
    return parts[0], parts[1]
