"""GPT-2 and GPT-3: learned positions, LayerNorm before each branch, GELU, biases, a head tied to the embedding."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from .description import check_sizes, padded
from .equal_heads import EqualHeads
from .fields import NO_DROPOUT, ConfigRules, read_fields

RULES = (
    ConfigRules(
        "gpt2",
        sizes=("n_layer", "n_embd", "n_head", "vocab_size"),
        defaults={"n_positions": 1024, "n_inner": None, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True},
        same={
            "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
            "scale_attn_weights": (True,),
            "scale_attn_by_inverse_layer_idx": (False,),
        },
        left_out=dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), NO_DROPOUT),
        without_effect=frozenset(
            (
                *("n_ctx", "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout"),
                *("summary_proj_to_labels", "summary_type", "summary_use_proj"),
            )
        ),
        architectures=("GPT2LMHeadModel",),
    ),
)


@dataclass(frozen=True, slots=True)
class GptModel(EqualHeads):
    """A decoder as GPT-2's (Radford et al., 2019).

    layers, hidden, heads    blocks, width, attention heads of width hidden / heads
    vocabulary, positions    rows of the two embeddings
    intermediate             units of the feed-forward layers; 0, or left out: 4 * hidden
    epsilon                  of LayerNorm
    tied                     the head has the embedding's weights
    pad_vocabulary           the vocabulary is padded to a multiple of pad_vocabulary * tp

    GELU is the tanh approximation. Raises InvalidArgumentError for a size that is not positive and for heads that do
    not divide the width.
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int = 50257
    positions: int = 1024
    intermediate: int = 0
    epsilon: float = 1e-5
    tied: bool = True
    pad_vocabulary: int = 128
    left_out: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    def __post_init__(self) -> None:
        check_sizes(self, layers=self.layers, hidden=self.hidden, heads=self.heads, vocabulary=self.vocabulary)
        object.__setattr__(self, "intermediate", self.intermediate or 4 * self.hidden)
        check_sizes(self, positions=self.positions, pad_vocabulary=self.pad_vocabulary, intermediate=self.intermediate)
        self.check_heads()

    @classmethod
    def from_config(cls, path: Path | str) -> Self:
        """The model of a config.json with `model_type` "gpt2"; raises as `ModelDescription.from_config`."""
        found = read_fields(path, RULES)
        return cls(
            layers=found.size("n_layer"),
            hidden=found.size("n_embd"),
            heads=found.size("n_head"),
            vocabulary=found.size("vocab_size"),
            positions=found.size("n_positions"),
            intermediate=found.count("n_inner"),
            epsilon=found.number("layer_norm_epsilon"),
            tied=found.flag("tie_word_embeddings"),
            left_out=found.left_out,
        )

    def padded_vocabulary(self, tp: int = 1) -> int:
        """Rows of the embedding that tp ranks share out."""
        return padded(self.vocabulary, self.pad_vocabulary, tp)

    @property
    def parameters(self) -> int:
        """V h + P h + L (4 h^2 + 2 h i + 9 h + i) + 2 h, and V h more for a head of its own."""
        h = self.hidden
        embeddings = (self.vocabulary * (1 if self.tied else 2) + self.positions) * h
        return embeddings + self.layers * self.block_parameters + 2 * h

    @property
    def has_cache(self) -> bool:
        """Tokens see those before them alone."""
        return True

    def rows_of(self, sequence_length: int) -> int:
        """One row a token."""
        return sequence_length
