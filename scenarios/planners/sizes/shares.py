"""What a rank has of a layer, in columns: tokens, rows between norms, heads; the bytes of an element.

tp [1, 8], cp [1, 2], sequence_parallel [no, yes], sequences of 4096, micro-batches of 1
    tokens [4096, 2048]      that products and attention of a rank see
    rows   [4096, 256]       that norms and residuals of a rank have
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from attrs import frozen

from ....graph.arrays import Floats
from ..configurations import CONTEXT_KINDS, Configurations
from ..step import PlannedStep
from .shapes import LayerShapes

_WIDTHS = {"float64": 8, "float32": 4}
"""bytes of an element of products; 2 for all other precisions: what fp8 products read is cast from 16 bits"""


@frozen(eq=False)
class RankShares:
    """Columns, all as floats: sizes fit exactly below 2^53."""

    tp: Floats
    cp: Floats
    tokens: Floats
    rows: Floats
    expert_rows: Floats
    """of the experts' products: `topk` for each token that the rank sends"""
    sent_rows: Floats
    """tokens that the rank sends to experts"""
    heads: Floats
    kv_heads: Floats
    exchanged_kv_heads: Floats
    """heads of keys and values times ranks of cp that a rank has after an exchange of heads, in heads of its tokens"""
    exchanges_heads: Floats
    """1 where cp exchanges heads for rows, else 0"""
    sequence_length: int
    width: int
    """bytes of an element of activations and parameters"""

    @classmethod
    def of(cls, step: PlannedStep, shapes: LayerShapes, configurations: Configurations) -> Self:
        """The shares of each row."""
        tp, cp = configurations.tp.astype(np.float64), configurations.cp.astype(np.float64)
        tokens = step.sequence_length / cp * configurations.microbatch
        rows = np.where(configurations.sequence_parallel, tokens / tp, tokens)
        sent, topk = tokens / tp, shapes.experts.topk if shapes.experts else 0
        exchanges = (configurations.cp > 1) & (configurations.cp_kind == CONTEXT_KINDS.index("heads"))
        kv_heads = np.maximum(shapes.kv_heads / tp, 1.0)
        return cls(
            tp=tp,
            cp=cp,
            tokens=tokens,
            rows=rows,
            expert_rows=sent * topk * np.minimum(step.imbalance, np.maximum(configurations.ep, 1)),
            sent_rows=sent,
            heads=shapes.heads / tp,
            kv_heads=kv_heads,
            exchanged_kv_heads=np.where(exchanges, np.maximum(kv_heads, cp), kv_heads),
            exchanges_heads=exchanges.astype(np.float64),
            sequence_length=step.sequence_length,
            width=_WIDTHS.get(configurations.precision, 2),
        )


class ShardCounts(NamedTuple):
    """Ranks that share out what is shared out: of parameters that all ranks of dp have, and of routed experts."""

    whole: Floats
    routed: Floats


def shards_of(shares: RankShares, configurations: Configurations) -> ShardCounts:
    """Over how many ranks what zero shares out is spread."""
    same = configurations.dp // configurations.ep
    return ShardCounts(
        np.asarray(configurations.zero_group * shares.cp),
        np.asarray(np.gcd(configurations.zero_group, same) * shares.cp * shares.tp),
    )
