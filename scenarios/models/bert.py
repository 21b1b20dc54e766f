"""BERT as a masked language model: LayerNorm behind each branch, GELU, and a head tied to the embedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Self

from ...errors import InvalidArgumentError
from .description import ModelDescription, check_sizes, padded
from .fields import NO_DROPOUT, ConfigRules, read_fields

RULES = (
    ConfigRules(
        "bert",
        sizes=(
            *("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size"),
            *("max_position_embeddings", "type_vocab_size"),
        ),
        defaults={"layer_norm_eps": 1e-12},
        same={
            "hidden_act": ("gelu",),
            "position_embedding_type": ("absolute",),
            "tie_word_embeddings": (True,),
        },
        left_out=dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), NO_DROPOUT),
        without_effect=frozenset(
            (
                *("classifier_dropout", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
                *("pooler_size_per_head", "pooler_type", "directionality"),
            )
        ),
        architectures=("BertForMaskedLM",),
    ),
)


@dataclass(frozen=True, slots=True)
class BertModel(ModelDescription):
    """An encoder as BERT's (Devlin et al., 2018), with the head that predicts masked tokens; no pooler.

    layers, hidden, heads    blocks, width, attention heads of width hidden / heads
    intermediate             units of the feed-forward layers
    vocabulary, positions, types    rows of the three embeddings
    epsilon                  of LayerNorm
    pad_vocabulary           the vocabulary is padded to a multiple of pad_vocabulary * tp

    GELU is the exact one. Raises InvalidArgumentError for a size that is not positive and for heads that do not divide
    the width.
    """

    layers: int
    hidden: int
    heads: int
    intermediate: int
    vocabulary: int = 30522
    positions: int = 512
    types: int = 2
    epsilon: float = 1e-12
    pad_vocabulary: int = 128
    left_out: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    def __post_init__(self) -> None:
        check_sizes(self, layers=self.layers, hidden=self.hidden, heads=self.heads, intermediate=self.intermediate)
        check_sizes(self, vocabulary=self.vocabulary, positions=self.positions, types=self.types)
        check_sizes(self, pad_vocabulary=self.pad_vocabulary)
        if self.hidden % self.heads:
            raise InvalidArgumentError(f"BertModel: heads={self.heads} does not divide hidden={self.hidden}")

    @classmethod
    def from_config(cls, path: Path | str) -> Self:
        """The model of a config.json with `model_type` "bert"; raises as `ModelDescription.from_config`."""
        found = read_fields(path, RULES)
        return cls(
            layers=found.size("num_hidden_layers"),
            hidden=found.size("hidden_size"),
            heads=found.size("num_attention_heads"),
            intermediate=found.size("intermediate_size"),
            vocabulary=found.size("vocab_size"),
            positions=found.size("max_position_embeddings"),
            types=found.size("type_vocab_size"),
            epsilon=found.number("layer_norm_eps"),
            left_out=found.left_out,
        )

    @property
    def head_size(self) -> int:
        """The width of a head."""
        return self.hidden // self.heads

    @property
    def softmax_scale(self) -> float:
        """What the scores of attention are multiplied with: 1 / sqrt(head size)."""
        return 1 / sqrt(self.head_size)

    def padded_vocabulary(self, tp: int = 1) -> int:
        """Rows of the embedding that tp ranks share out."""
        return padded(self.vocabulary, self.pad_vocabulary, tp)

    @property
    def parameters(self) -> int:
        """(V + P + T + 2) h + L (4 h^2 + 2 h i + 9 h + i) + h^2 + 3 h + V.

        Three embeddings and their norm; blocks, as GPT's; the head's dense layer, its norm, and a bias a class.
        """
        h, i = self.hidden, self.intermediate
        embeddings = (self.vocabulary + self.positions + self.types + 2) * h
        block = 4 * h * h + 2 * h * i + 9 * h + i
        return embeddings + self.layers * block + h * h + 3 * h + self.vocabulary

    @property
    def attention_width(self) -> int:
        """The hidden size."""
        return self.hidden

    def rows_of(self, sequence_length: int) -> int:
        """One row a token."""
        return sequence_length

    @property
    def cut_by_tensor_parallel(self) -> Mapping[str, int]:
        """Heads and feed-forward units."""
        return {"heads": self.heads, "intermediate": self.intermediate}
