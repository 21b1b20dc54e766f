"""The attention of a layer as a rank runs it: projections, positions, the cache, attention, and the way back.

    grouped    norm, one product for queries, keys and values, rotary positions, cache, attention, product, sum over tp
    latent     norm, narrow rows, cache of them, attention over the cache of all heads, product, sum over tp

These are the ops of `scenarios/workloads/transformers/attention`, in the order of a stream.
"""

from __future__ import annotations

from ....graph.dtypes import DataType
from ...models.gpt import GptModel
from ...models.llama import LlamaModel
from ...models.moe import LatentAttention, MoeModel
from .operations import RankOps
from .rank import Rank


def attention(run: RankOps, rank: Rank) -> None:
    """Norm, attention and residual sum of one layer.

    The rows of a prompt are written into the cache while ranks sum up.
    """
    model, writing = rank.model, run.apart()
    latent = model.latent if isinstance(model, MoeModel) else None
    norm(run, rank)
    if latent is not None:
        _latent(run, writing, rank, latent)
        has_bias = False
    else:
        _grouped(run, writing, rank)
        has_bias = model.output_bias if isinstance(model, LlamaModel) else True
    if rank.tp > 1:
        run.meets("all_reduce", "tp", rank.rows * model.hidden * run.element_bytes, writing.kernels())
    else:
        run.items += writing.items
    if has_bias:
        run.bias(rank.rows, model.hidden)
    run.moves("AddV2", rank.rows * model.hidden, operands=2)


def norm(run: RankOps, rank: Rank) -> None:
    """The norm before a branch."""
    if isinstance(rank.model, GptModel):
        run.layer_norm(rank.rows, rank.model.hidden)
    else:
        run.rms_norm(rank.rows, rank.model.hidden)


def summed(run: RankOps, rank: Rank, width: int) -> None:
    """The sum of all ranks' parts of a product."""
    if rank.tp > 1:
        run.meets("all_reduce", "tp", rank.rows * width * run.element_bytes)


def _grouped(run: RankOps, writing: RankOps, rank: Rank) -> None:
    model, phase, rows = rank.model, rank.phase, rank.rows
    heads, kv_heads, size = rank.heads, rank.kv_heads, model.head_size
    _projected(run, rank)
    if isinstance(model, LlamaModel):
        run.rotary(phase.length, phase.sequences, heads, size)
        run.rotary(phase.length, phase.sequences, kv_heads, size)
    if phase.decodes:
        for _ in ("key", "value"):
            run.written(phase.sequences, kv_heads, 1, size)
        _cached(run, rank, (heads, size), (kv_heads, size))
    else:
        for _ in ("key", "value"):
            _stored(run, writing, rank, kv_heads, size)
        _flash(run, rank, kv_heads, size, size)
    run.product(rows, heads * size, model.hidden)


def _projected(run: RankOps, rank: Rank) -> None:
    """Queries, keys and values."""
    model, rows, size = rank.model, rank.rows, rank.model.head_size
    widths = [heads * size for heads in (rank.heads, rank.kv_heads, rank.kv_heads)]
    has_bias = model.qkv_bias if isinstance(model, LlamaModel) else True
    if rank.has_joint_projection:
        run.product(rows, model.hidden, sum(widths))
        if has_bias:
            run.bias(rows, sum(widths))
        run.parted(rows * rank.kv_heads, *(width // rank.kv_heads for width in widths))
        return
    for at, width in enumerate(widths):
        if at:  # the one head of keys, or values, of weights that each rank has whole
            whole = model.hidden * rank.model.head_size * (model.shared_heads or 1)
            run.cut((model.hidden, whole // model.hidden), (model.hidden, width))
            run.weight_bytes += whole * run.element_bytes
        run.product(rows, model.hidden, width, keeps=not at)
        if has_bias:
            run.bias(rows, width)


def _stored(run: RankOps, writing: RankOps, rank: Rank, heads: int, size: int) -> None:
    """Rows of a prompt into the cache."""
    phase = rank.phase
    run.transposed(phase.length, phase.sequences * heads * size)
    writing.written(phase.sequences, heads, phase.length, size)


def _flash(run: RankOps, rank: Rank, kv_heads: int, size: int, value_size: int) -> None:
    """Attention of a prompt to itself."""
    phase, heads = rank.phase, rank.heads
    window = rank.model.window if isinstance(rank.model, LlamaModel) else 0

    def of(count: int, width: int) -> tuple[int, ...]:
        return (phase.length, phase.sequences, count, width)

    run.op(
        "Partita>FlashAttention",
        (of(heads, size), of(kv_heads, size), of(kv_heads, value_size)),
        (of(heads, value_size), (phase.sequences, heads, phase.length)),
        T=run.compute,
        U=run.wide,
        causal=True,
        window=window,
        sequence_first=True,
    )


def _cached(run: RankOps, rank: Rank, query: tuple[int, int], rows: tuple[int, int], value_size: int = 0) -> None:
    """Attention of a token of each sequence to the cache; `value_size` where keys have the values in them."""
    phase = rank.phase
    window = rank.model.window if isinstance(rank.model, LlamaModel) and not value_size else 0
    (heads, size), (kv_heads, width) = query, rows
    cache = (phase.sequences, kv_heads, phase.context, width)
    caches = (cache,) if value_size else (cache, cache)
    run.op(
        "Partita>CachedAttention",
        ((phase.sequences, heads, size), *caches, ()),
        ((phase.sequences, heads, value_size or size),),
        lasting=range(1, 1 + len(caches)),
        T=run.compute,
        N=len(caches),
        window=window,
        value_size=value_size,
    )


def _latent(run: RankOps, writing: RankOps, rank: Rank, latent: LatentAttention) -> None:
    model, phase, rows, heads = rank.model, rank.phase, rank.rows, rank.heads
    narrow, rope = latent.kv_rank, latent.rope_size
    if latent.q_rank:
        run.product(rows, model.hidden, latent.q_rank)
        run.rms_norm(rows, latent.q_rank)
    run.product(rows, latent.q_rank or model.hidden, heads * latent.query_size)
    run.parted(rows * heads, latent.nope_size, rope)
    run.rotary(phase.length, phase.sequences, heads, rope)
    run.product(rows, model.hidden, narrow + rope)
    run.parted(rows, narrow, rope)
    run.rms_norm(rows, narrow)
    run.rotary(phase.length, phase.sequences, 1, rope)
    run.joined(rows, narrow, rope)
    if phase.decodes:
        _latent_decoded(run, rank, latent)
    else:
        _latent_whole(run, writing, rank, latent)
    run.product(rows, heads * latent.value_size, model.hidden)


def _latent_decoded(run: RankOps, rank: Rank, latent: LatentAttention) -> None:
    """Queries and outputs in the space of the narrow rows, which all heads read from the cache."""
    phase, heads, narrow, rope = rank.phase, rank.heads, latent.kv_rank, latent.rope_size
    _by_head(run, "bhn,khn->bhk", phase.sequences, heads, latent.nope_size, narrow, (narrow, heads, latent.nope_size))
    run.joined(phase.sequences * heads, narrow, rope)
    run.written(phase.sequences, 1, 1, narrow + rope)
    _cached(run, rank, (heads, narrow + rope), (1, narrow + rope), narrow)
    _by_head(run, "bhk,khv->bhv", phase.sequences, heads, narrow, latent.value_size, (narrow, heads, latent.value_size))


def _by_head(
    run: RankOps, equation: str, sequences: int, heads: int, width: int, made: int, weights: tuple[int, int, int]
) -> None:
    shapes = ((sequences, heads, width), weights)
    run.op("Einsum", shapes, ((sequences, heads, made),), lasting=(1,), T=run.compute, N=2, equation=equation.encode())
    run.weight_bytes += heads * width * made * run.element_bytes


def _latent_whole(run: RankOps, writing: RankOps, rank: Rank, latent: LatentAttention) -> None:
    """Keys and values of all heads of a prompt."""
    phase, rows, heads = rank.phase, rank.rows, rank.heads
    for width in (latent.nope_size, latent.value_size):
        run.product(rows, latent.kv_rank, heads * width)
    tiled = (phase.length, phase.sequences, heads, latent.rope_size)
    before = (phase.length, phase.sequences, 1, latent.rope_size)
    run.op("Tile", (before, (4,)), (tiled,), T=run.compute, Tmultiples=DataType.INT32)
    for _ in ("query", "key"):
        run.joined(rows * heads, latent.nope_size, latent.rope_size)
    _stored(run, writing, rank, 1, latent.kv_rank + latent.rope_size)
    _flash(run, rank, heads, latent.query_size, latent.value_size)
