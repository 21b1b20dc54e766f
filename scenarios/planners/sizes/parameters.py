"""How many parameters a rank has of each kind of layer, in columns.

Tensor parallelism cuts products by heads and units; norms, routers and the narrow products of latent attention are on
all its ranks. Routed experts are cut by expert parallelism alone. Vocabularies are padded so that tp divides them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ....graph.arrays import Floats
from ..configurations import Configurations
from .shapes import LayerShapes
from .shares import RankShares

Numeric = TypeVar("Numeric", bound=NDArray[Any])  # Any: whole numbers or floats


class ParameterCounts(NamedTuple):
    """Elements, of one layer of a kind or of an end of the model."""

    attention: Floats
    dense: Floats
    """the feed-forward part of a dense layer, with both norms of a layer"""
    routed: Floats
    """the experts of a layer that the rank has"""
    beside_routed: Floats
    """the rest of the feed-forward part of a layer with experts, with both norms of a layer"""
    one_expert: Floats
    embedding: Floats
    """with learned positions"""
    vocabulary: Floats
    """one matrix of the padded vocabulary"""
    last_norm: int


def rank_parameters(shapes: LayerShapes, shares: RankShares, configurations: Configurations) -> ParameterCounts:
    """The parameters of a rank."""
    norms = np.full(len(configurations), 2.0 * shapes.norm_vectors * shapes.hidden)
    padded = padded_vocabulary(shapes, shares.tp)
    one_expert = routed = beside = np.zeros(len(configurations))
    if (experts := shapes.experts) is not None:
        one_expert = np.full(len(configurations), 3.0 * shapes.hidden * experts.units)
        routed = one_expert * experts.count / configurations.ep
        beside = norms + shapes.hidden * (experts.count + 3 * experts.shared_units / shares.tp)
    return ParameterCounts(
        attention=_attention(shapes, shares),
        dense=norms + _feed_forward(shapes, shares),
        routed=routed,
        beside_routed=beside,
        one_expert=one_expert,
        embedding=padded / shares.tp * shapes.hidden + shapes.positions * shapes.hidden,
        vocabulary=padded / shares.tp * shapes.hidden,
        last_norm=shapes.norm_vectors * shapes.hidden,
    )


def padded_vocabulary(shapes: LayerShapes, tp: Numeric) -> Numeric:
    """Rows of the embedding that tp ranks share out, as `GptModel.padded_vocabulary` has them."""
    step = shapes.vocabulary_multiple * tp
    rows: Numeric = -(-shapes.vocabulary // step) * step
    return rows


def _attention(shapes: LayerShapes, shares: RankShares) -> Floats:
    """Of one layer, without its norm."""
    hidden, heads = shapes.hidden, shares.heads
    queries, mixed = heads * shapes.query_size, heads * shapes.value_size
    if shapes.is_latent:
        rank, kv_rank = shapes.query_rank, shapes.kv_rank
        of_queries = rank * (hidden + 1 + queries) if rank else hidden * queries
        narrow = hidden * (kv_rank + shapes.turned_size) + kv_rank
        wide = kv_rank * heads * (shapes.query_size - shapes.turned_size + shapes.value_size)
        return np.asarray(of_queries + narrow + wide + mixed * hidden)
    shared = shares.kv_heads * (shapes.query_size + shapes.value_size)
    biases = (queries + shared) * shapes.qkv_bias + hidden * shapes.output_bias
    return np.asarray(hidden * (queries + shared + mixed) + biases)


def _feed_forward(shapes: LayerShapes, shares: RankShares) -> Floats:
    """Of a dense layer, without its norm."""
    units = shapes.units / shares.tp
    biases = (units + shapes.hidden) * shapes.biases
    return np.asarray((3 if shapes.is_gated else 2) * shapes.hidden * units + biases)
