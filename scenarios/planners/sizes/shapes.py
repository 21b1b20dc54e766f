"""What of a model memory depends on: the sizes of its layers, whichever family it is of.

    LayerShapes.of(LlamaModel(...))    hidden 8192, 64 heads of 128, 8 of keys and values, 28672 gated units
    LayerShapes.of(MoeModel(...))      as well: narrow rows of latent attention, experts, the first layers without them

Sizes are those of the whole model; a split cuts them.
"""

from __future__ import annotations

from typing import Any, Self

from attrs import frozen

from ....errors import UnimplementedError
from ...models.description import ModelDescription
from ...models.gpt import GptModel
from ...models.llama import LlamaModel
from ...models.moe import MoeModel


@frozen
class ExpertShapes:
    """The experts of a layer: `topk` of `count` for a token, of `units` hidden units each, and one for all tokens."""

    count: int
    topk: int
    units: int
    shared_units: int


@frozen
class LayerShapes:
    """Widths, in elements.

    heads, kv_heads           of queries, and of keys and values
    query_size, value_size    of a head
    query_rank, kv_rank       the narrow rows of latent attention, 0 for none; `turned_size` of the shared key beside it
    units                     of a dense layer's feed-forward products; `is_gated`: one more product makes their gates
    norm_vectors              of a norm: weights, and biases where it has them
    biases                    whether all products have one; `qkv_bias` and `output_bias` are those of attention
    """

    model: ModelDescription
    hidden: int
    heads: int
    kv_heads: int
    query_size: int
    value_size: int
    units: int
    is_gated: bool
    norm_vectors: int
    biases: bool
    qkv_bias: bool
    output_bias: bool
    vocabulary_multiple: int
    vocabulary: int
    positions: int
    tied: bool
    query_rank: int = 0
    kv_rank: int = 0
    turned_size: int = 0
    dense_layers: int = 0
    """of the first layers"""
    experts: ExpertShapes | None = None

    @classmethod
    def of(cls, model: ModelDescription) -> Self:
        """UnimplementedError for a family whose memory has no closed form."""
        if isinstance(model, GptModel):
            return cls(**_gpt(model))
        if isinstance(model, MoeModel):
            return cls(**_decoder(model) | _experts(model))
        if isinstance(model, LlamaModel):
            return cls(**_decoder(model))
        raise UnimplementedError(
            f"{type(model).__name__}: the memory of this family has no closed form; plan a gpt, llama or moe model, or "
            "simulate the graph of this one"
        )

    @property
    def is_latent(self) -> bool:
        """Whether keys and values come out of narrow rows."""
        return self.kv_rank > 0


def _gpt(model: GptModel) -> dict[str, Any]:  # Any: fields differ in type
    return {
        "model": model,
        "hidden": model.hidden,
        "heads": model.heads,
        "kv_heads": model.heads,
        "query_size": model.head_size,
        "value_size": model.head_size,
        "units": model.intermediate,
        "is_gated": False,
        "norm_vectors": 2,
        "biases": True,
        "qkv_bias": True,
        "output_bias": True,
        "vocabulary_multiple": model.pad_vocabulary,
        "vocabulary": model.vocabulary,
        "positions": model.positions,
        "tied": model.tied,
        "dense_layers": model.layers,
    }


def _decoder(model: LlamaModel) -> dict[str, Any]:  # Any: fields differ in type
    return {
        "model": model,
        "hidden": model.hidden,
        "heads": model.heads,
        "kv_heads": model.kv_heads,
        "query_size": model.head_size,
        "value_size": model.head_size,
        "units": model.intermediate,
        "is_gated": True,
        "norm_vectors": 1,
        "biases": False,
        "qkv_bias": model.qkv_bias,
        "output_bias": model.output_bias,
        "vocabulary_multiple": model.pad_vocabulary,
        "vocabulary": model.vocabulary,
        "positions": 0,
        "tied": model.tied,
        "turned_size": model.head_size,
        "dense_layers": model.layers,
    }


def _experts(model: MoeModel) -> dict[str, Any]:  # Any: fields differ in type
    sizes: dict[str, Any] = {
        "dense_layers": model.dense_layers,
        "experts": ExpertShapes(model.experts, model.topk, model.expert_intermediate, model.shared_intermediate),
    }
    if model.latent is not None:
        sizes |= {
            "kv_heads": model.heads,
            "query_size": model.latent.query_size,
            "value_size": model.latent.value_size,
            "query_rank": model.latent.q_rank,
            "kv_rank": model.latent.kv_rank,
            "turned_size": model.latent.rope_size,
        }
    return sizes
