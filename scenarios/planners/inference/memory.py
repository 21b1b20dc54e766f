"""What a rank of each stage holds: weights, keys and values, and the activations of one op.

    Llama-3 8B, tp 1, batch 8, 2048 + 256 tokens     15.0 GiB + 8 * 0.28 GiB + 0.2 GiB

With pp stages as many batches are under way, each with keys and values of its own on every stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....graph.dtypes import item_size
from ...models.moe import MoeModel
from ...models.split import Precision
from .passages import ReplicaLayout
from .program import COMPUTE_TYPES, StageProgram
from .rank import Phase, Rank, ServedModel


class HeldBytes(NamedTuple):
    """The bytes of the fullest stage: keys and values, and all."""

    cache: int
    allocated: int


class StageBytes(NamedTuple):
    """Of one stage what does not depend on the batch, and what each sequence of a batch adds."""

    weights: int
    cache_of_sequence: int
    activations: int

    def held(self, batch: int, activations: int) -> HeldBytes:
        """With a batch whose own step has so many activations."""
        cache = batch * self.cache_of_sequence
        return HeldBytes(cache, self.weights + cache + max(self.activations, activations))

    def most_sequences(self, limit_bytes: int) -> int:
        """How many sequences fit, if those of a batch have no activations to speak of."""
        return max(0, (limit_bytes - self.weights - self.activations) // self.cache_of_sequence)


def cache_bytes(model: ServedModel, layout: ReplicaLayout, context: int, precision: Precision) -> int:
    """Bytes of the keys and values of one sequence in one layer, on one rank.

    Those of a window of attention are kept for all tokens, as the graph does.
    """
    if isinstance(model, MoeModel) and model.latent is not None:
        width = model.latent.kv_rank + model.latent.rope_size
    else:
        width = 2 * Rank(model, Phase("decode", 1, 1, context), layout.tp, layout.ep).kv_heads * model.head_size
    return width * context * item_size(COMPUTE_TYPES[precision])


def stage_bytes(prompt_stages: Sequence[StageProgram], layers: Sequence[int], layer_bytes: int) -> list[StageBytes]:
    """By stage; `layer_bytes` are those of the keys and values of a sequence in a layer."""
    batches = len(layers)
    return [
        StageBytes(stage.weight_bytes, batches * count * layer_bytes, stage.activation_bytes)
        for stage, count in zip(prompt_stages, layers, strict=True)
    ]
