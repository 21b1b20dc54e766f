"""What a layer keeps of one micro-batch for its backward pass, in bytes by columns.

    norm -> queries, keys, values -> attention -> product -> sum -> norm -> units -> product -> sum

Each product keeps what it reads, a norm too with the statistics of its rows; attention keeps queries, keys, values and
its output, with the logsumexp of each row where it is one kernel, else with the softmax of all scores; dropout keeps a
byte an element. Summed up for a GPT with dropout and 16 bits, without a fused kernel, that is s b h (34 + 5 a s / h)
bytes (Korthikanti et al. 2022: Reducing Activation Recomputation in Large Transformer Models, equation 1), of which
10 s b h lie between norms and are not cut by tp (equation 2) unless the sequence is (equation 4).

With experts, rows that are sent are kept sorted by expert, with both products' outputs. Where ranks of cp exchange
heads, the output of attention is kept before and behind the way back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....graph.arrays import Floats
from ..configurations import RECOMPUTATIONS, Configurations
from ..sizes.shapes import LayerShapes
from ..sizes.shares import RankShares
from ..step import PlannedStep

_ROUTER_BYTES = 4 + 4 + 4 + 1 + 2 * 4
"""a token and expert: float32 logits, scores and weights; the choice; its places in both orders of rows"""
_FLOAT = 4


class AttentionKept(NamedTuple):
    """Bytes of the attention of a layer."""

    entry: Floats
    """what the norm reads: all that remains where the whole layer is computed again"""
    normed: Floats
    """what the norm makes, and its statistics"""
    heads: Floats
    """queries, keys and values"""
    core: Floats
    """what attention itself keeps: logsumexp, or softmax with masks and what is left behind them"""
    mixed: Floats
    """the output of attention"""
    mask: Floats
    products: Floats
    """scores where attention is not one kernel, and what the output product makes: only "products" keeps them"""


class FeedForwardKept(NamedTuple):
    """Bytes of the feed-forward part of a layer."""

    entry: Floats
    normed: Floats
    products: Floats
    """what the first products make"""
    others: Floats
    """what the last products read, rows that were sent to experts, what the router keeps"""
    mask: Floats
    output: Floats
    """what the last products make, which only "products" keeps"""


class LayerKept(NamedTuple):
    """A layer of one kind."""

    attention: AttentionKept
    feed_forward: FeedForwardKept

    @property
    def all(self) -> Floats:
        """Without any recomputation."""
        a, f = self.attention, self.feed_forward
        attention = a.entry + a.normed + a.heads + a.core + a.mixed + a.mask
        return np.asarray(attention + f.entry + f.normed + f.products + f.others + f.mask)

    def by_recomputation(self, configurations: Configurations) -> Floats:
        """What each row's recomputation leaves."""
        a, f = self.attention, self.feed_forward
        left = {
            "none": self.all,
            "selective": self.all - a.core,
            "full": a.entry,
            "products": a.entry + a.heads + a.mixed + a.products + f.products + f.output,
        }
        return np.asarray(np.choose(configurations.recompute, [left[name] for name in RECOMPUTATIONS]))


def attention_kept(step: PlannedStep, shapes: LayerShapes, shares: RankShares) -> AttentionKept:
    """Of any layer."""
    width, between = shares.width, shares.rows * shapes.hidden * shares.width
    statistics = shapes.norm_vectors * _FLOAT * shares.rows
    heads = _heads(shapes, shares) * width
    narrow = 2 * (shapes.query_rank + shapes.kv_rank) * shares.rows * width if shapes.is_latent else 0.0
    mixed = shares.tokens * shares.heads * shapes.value_size * width
    return AttentionKept(
        entry=between,
        normed=between + statistics + narrow,
        heads=heads,
        core=_core(step, shares),
        mixed=mixed * (1 + shares.exchanges_heads),
        mask=shares.rows * shapes.hidden * float(step.dropout),
        products=between + (_FLOAT * shares.tokens * shares.heads if step.fused_attention else scores(shares) * width),
    )


def _heads(shapes: LayerShapes, shares: RankShares) -> Floats:
    """Elements of queries, keys and values."""
    if shapes.is_latent:
        shared = shares.rows * shapes.turned_size
        return np.asarray(shares.tokens * shares.heads * (2 * shapes.query_size + shapes.value_size) + shared)
    pairs = shares.exchanged_kv_heads * (shapes.query_size + shapes.value_size)
    return np.asarray(shares.tokens * (shares.heads * shapes.query_size + pairs))


def scores(shares: RankShares) -> Floats:
    """Elements of the scores of all pairs that a rank compares."""
    return np.asarray(shares.tokens * shares.heads * shares.sequence_length)


def _core(step: PlannedStep, shares: RankShares) -> Floats:
    if step.fused_attention:
        return np.asarray(_FLOAT * shares.tokens * shares.heads)
    return scores(shares) * (shares.width + (1 + shares.width if step.dropout else 0))


def dense_kept(step: PlannedStep, shapes: LayerShapes, shares: RankShares) -> FeedForwardKept:
    """Of a layer without experts."""
    units = shares.tokens * shapes.units / shares.tp * shares.width
    return _feed_forward(step, shapes, shares, units * (2 if shapes.is_gated else 1), units, 0.0)


def experts_kept(step: PlannedStep, shapes: LayerShapes, shares: RankShares) -> FeedForwardKept:
    """Of a layer with experts; one of a model that has none is never counted."""
    experts = shapes.experts
    if experts is None:
        return _feed_forward(step, shapes, shares, np.zeros_like(shares.tp), np.zeros_like(shares.tp), 0.0)
    units = shares.expert_rows * experts.units + shares.tokens * experts.shared_units / shares.tp
    sent = shares.expert_rows * shapes.hidden * shares.width
    router = shares.sent_rows * experts.count * _ROUTER_BYTES
    return _feed_forward(step, shapes, shares, 2 * units * shares.width, units * shares.width + sent + router, sent)


def _feed_forward(
    step: PlannedStep, shapes: LayerShapes, shares: RankShares, products: Floats, others: Floats, sent: Floats | float
) -> FeedForwardKept:
    between = shares.rows * shapes.hidden * shares.width
    return FeedForwardKept(
        entry=between,
        normed=between + shapes.norm_vectors * _FLOAT * shares.rows,
        products=products,
        others=others,
        mask=shares.rows * shapes.hidden * float(step.dropout),
        output=between + sent,
    )
