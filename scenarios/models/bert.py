"""BERT as a masked language model: LayerNorm behind each branch, GELU, and a head tied to the embedding."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from .description import check_sizes, padded
from .equal_heads import EqualHeads
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
class BertModel(EqualHeads):
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
        self.check_heads()

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

    def padded_vocabulary(self, tp: int = 1) -> int:
        """Rows of the embedding that tp ranks share out."""
        return padded(self.vocabulary, self.pad_vocabulary, tp)

    @property
    def parameters(self) -> int:
        """(V + P + T + 2) h + L (4 h^2 + 2 h i + 9 h + i) + h^2 + 3 h + V.

        Three embeddings and their norm; blocks, as GPT's; the head's dense layer, its norm, and a bias a class.
        """
        h = self.hidden
        embeddings = (self.vocabulary + self.positions + self.types + 2) * h
        return embeddings + self.layers * self.block_parameters + h * h + 3 * h + self.vocabulary

    def rows_of(self, sequence_length: int) -> int:
        """One row a token."""
        return sequence_length
