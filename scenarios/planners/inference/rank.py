"""What a rank of an inference step computes: how many tokens of how many sequences, and its share of the model.

Phase("decode", sequences=8, length=1, context=2176)        one token of each of 8 sequences, 2176 in the cache
Phase("prefill", sequences=1, length=2048, context=2304)    a prompt of 2048 tokens; the cache has room for 2304

Rank(llama, Phase(...), tp=8, ep=1)      heads 4, kv_heads 1, rows 8
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from ....errors import InvalidArgumentError
from ...models.description import ModelDescription
from ...models.gpt import GptModel
from ...models.llama import LlamaModel
from ...models.moe import MoeModel
from ...workloads.inference import Inference

ServedModel: TypeAlias = GptModel | LlamaModel
"""decoders of which keys and values are kept; a `MoeModel` is a `LlamaModel`"""


def served(model: ModelDescription, prompt: int, output: int) -> ServedModel:
    """The model; InvalidArgumentError for one that keeps nothing, and for lengths that cannot be."""
    if not isinstance(model, GptModel | LlamaModel):
        raise InvalidArgumentError(
            f"{type(model).__name__} does not go on token by token: inference is for {GptModel.__name__}, "
            f"{LlamaModel.__name__} and {MoeModel.__name__}"
        )
    for name, value, least in (("prompt", prompt, 2), ("output", output, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidArgumentError(f"{name}={value!r} is no number of tokens; give {least} or more")
    if model.positions and prompt + output > model.positions:
        raise InvalidArgumentError(
            f"prompt + output = {prompt} + {output} tokens are more than the model's positions={model.positions}; give "
            f"an output of {max(1, model.positions - prompt)} or less, or a shorter prompt"
        )
    return model


@frozen
class Phase:
    """The tokens of a rank's step: `length` of each sequence, and caches with room for `context`."""

    kind: Inference
    sequences: int
    length: int
    context: int

    @property
    def decodes(self) -> bool:
        """Whether earlier tokens are in caches."""
        return self.kind == "decode"

    @property
    def rows(self) -> int:
        """Tokens in all."""
        return self.sequences * self.length


@frozen
class Rank:
    """A rank of tp, and of ep where the model has experts."""

    model: ServedModel
    phase: Phase
    tp: int
    ep: int

    @property
    def rows(self) -> int:
        """Tokens in all."""
        return self.phase.rows

    @property
    def heads(self) -> int:
        """Query heads of the rank."""
        return self.model.heads // self.tp

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values of the rank: at least one, which several ranks then have."""
        shared = self.model.shared_heads
        return self.heads if shared is None else max(1, shared // self.tp)

    @property
    def has_joint_projection(self) -> bool:
        """Whether queries, keys and values come out of one product."""
        shared = self.model.shared_heads
        return shared is None or shared >= self.tp
