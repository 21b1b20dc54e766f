"""Llama and its like: RMSNorm, rotary positions, SwiGLU, grouped-query heads; biases where Qwen2 has them.

Qwen2 has biases on queries, keys and values; Mistral has a window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any, Self

from ...errors import InvalidArgumentError
from .description import ModelDescription, check_sizes, padded
from .fields import NO_DROPOUT, ConfigFields, ConfigRules, read_fields
from .rope import DEFAULT_ROPE, Rope
from .rope_fields import read_rope, rope_defaults
from .rows import ModelRow, read_row

DECODER_SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
SILU: dict[str, tuple[object, ...]] = {"hidden_act": ("silu", "swish")}

RULES = (
    ConfigRules(
        "llama",
        sizes=DECODER_SIZES,
        defaults=(
            rope_defaults()
            | {"num_key_value_heads": None, "head_dim": None, "rms_norm_eps": 1e-6}
            | {"attention_bias": False, "tie_word_embeddings": False}
        ),
        same={**SILU, "mlp_bias": (False,)},
        left_out={"attention_dropout": NO_DROPOUT},
        without_effect=frozenset({"pretraining_tp"}),
        architectures=("LlamaForCausalLM",),
    ),
    ConfigRules(
        "qwen2",
        sizes=DECODER_SIZES,
        defaults=(
            rope_defaults(positions=32768)
            | {"num_key_value_heads": 32, "rms_norm_eps": 1e-6, "tie_word_embeddings": False}
            | {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28, "layer_types": None}
        ),
        same={**SILU, "use_mrope": (False,)},
        left_out={"attention_dropout": NO_DROPOUT},
        architectures=("Qwen2ForCausalLM",),
    ),
    ConfigRules(
        "mistral",
        sizes=DECODER_SIZES,
        defaults=(
            rope_defaults(positions=131072)
            | {"num_key_value_heads": 8, "head_dim": None, "rms_norm_eps": 1e-6, "tie_word_embeddings": False}
            | {"sliding_window": 4096}
        ),
        same=SILU,
        left_out={"attention_dropout": NO_DROPOUT},
        architectures=("MistralForCausalLM",),
    ),
)


@dataclass(frozen=True, slots=True)
class LlamaModel(ModelDescription):
    """A decoder as Llama's (Touvron et al., 2023).

    layers, hidden, heads    blocks, width, query heads
    intermediate             units of the gated feed-forward layers
    vocabulary               rows of the embedding
    kv_heads                 heads of keys and values, a divisor of heads; 0, or left out: heads
    head_size                0, or left out: hidden / heads
    epsilon                  of RMSNorm
    rope                     rotary positions; the first half of a head turns with the second
    qkv_bias, output_bias    biases of the projections into and out of attention
    tied                     the head has the embedding's weights
    window                   a token sees itself and window - 1 before it; 0: all before it
    pad_vocabulary           the vocabulary is padded to a multiple of pad_vocabulary * tp

    Raises InvalidArgumentError for a size that is not positive and for heads that cannot be shared out.
    """

    layers: int
    hidden: int
    heads: int
    intermediate: int
    vocabulary: int
    kv_heads: int = 0
    head_size: int = 0
    epsilon: float = 1e-5
    rope: Rope = DEFAULT_ROPE
    qkv_bias: bool = False
    output_bias: bool = False
    tied: bool = False
    window: int = 0
    pad_vocabulary: int = 128
    left_out: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    def __post_init__(self) -> None:
        check_sizes(self, layers=self.layers, hidden=self.hidden, heads=self.heads, vocabulary=self.vocabulary)
        check_sizes(self, intermediate=self.intermediate, pad_vocabulary=self.pad_vocabulary, window=self.window + 1)
        name = type(self).__name__
        if not self.head_size and self.hidden % self.heads:
            raise InvalidArgumentError(
                f"{name}: heads={self.heads} does not divide hidden={self.hidden}; give head_size"
            )
        object.__setattr__(self, "head_size", self.head_size or self.hidden // self.heads)
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)
        check_sizes(self, kv_heads=self.kv_heads, head_size=self.head_size)
        if self.heads % self.kv_heads:
            raise InvalidArgumentError(f"{name}: kv_heads={self.kv_heads} does not divide heads={self.heads}")

    @classmethod
    def from_config(cls, path: Path | str) -> Self:
        """The model of a config.json of type llama, qwen2 or mistral; raises as `ModelDescription.from_config`."""
        found = read_fields(path, RULES)
        is_qwen2 = found.rules.model_type == "qwen2"
        has_biases = "attention_bias" in found.values and found.flag("attention_bias")
        return cls(
            **decoder_sizes(found), qkv_bias=is_qwen2 or has_biases, output_bias=has_biases, window=_window(found)
        )

    @classmethod
    def from_row(cls, path: Path | str, name: str, *, layers: int, **beside: Any) -> Self:
        """The model of a row of a table of models (llm_models.csv), with what the row lacks given beside it.

        `beside` are fields of this class; one that the row has too counts in place of the row's. Raises NotFoundError
        for a name without a row, InvalidArgumentError for a row of another family.
        """
        row = read_row(path, name)
        row.refuse("expert_num", "kv_lora_rank")
        return cls(**{**row_sizes(row), "layers": layers, **beside})

    @property
    def softmax_scale(self) -> float:
        """What the scores of attention are multiplied with: 1 / sqrt(head size)."""
        return 1 / sqrt(self.head_size)

    def padded_vocabulary(self, tp: int = 1) -> int:
        """Rows of the embedding that tp ranks share out."""
        return padded(self.vocabulary, self.pad_vocabulary, tp)

    @property
    def parameters(self) -> int:
        """Embedding, blocks, the last norm, and the head unless it is tied."""
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        norms = (2 * self.layers + 1) * self.hidden
        return embeddings + norms + self.layers * self.attention_parameters + self.feed_forward_parameters

    @property
    def attention_parameters(self) -> int:
        """Of one block: 2 h d (heads + kv_heads), and the biases."""
        return self._grouped_attention_parameters()

    def _grouped_attention_parameters(self) -> int:
        query, shared = self.heads * self.head_size, self.kv_heads * self.head_size
        biases = (query + 2 * shared if self.qkv_bias else 0) + (self.hidden if self.output_bias else 0)
        return 2 * self.hidden * (query + shared) + biases

    @property
    def feed_forward_parameters(self) -> int:
        """Of all blocks: 3 h i each."""
        return self.layers * 3 * self.hidden * self.intermediate

    @property
    def attention_width(self) -> int:
        """heads * head_size."""
        return self.heads * self.head_size

    @property
    def has_cache(self) -> bool:
        """Tokens see those before them alone."""
        return True

    def rows_of(self, sequence_length: int) -> int:
        """One row a token."""
        return sequence_length

    def attended(self, sequence_length: int) -> int:
        """All tokens, or those of the window."""
        return min(sequence_length, self.window or sequence_length)

    @property
    def cut_by_tensor_parallel(self) -> Mapping[str, int]:
        """Query heads and feed-forward units."""
        return {"heads": self.heads, "intermediate": self.intermediate}

    @property
    def shared_heads(self) -> int | None:
        """The heads of keys and values."""
        return self.kv_heads


def decoder_sizes(found: ConfigFields) -> dict[str, Any]:  # Any: fields differ in type
    """The fields of a `LlamaModel` that all decoders' files say in the same way."""
    sizes = {
        "layers": found.size("num_hidden_layers"),
        "hidden": found.size("hidden_size"),
        "heads": found.size("num_attention_heads"),
        "intermediate": found.size("intermediate_size"),
        "vocabulary": found.size("vocab_size"),
        "epsilon": found.number("rms_norm_eps"),
        "rope": read_rope(found),
        "tied": found.flag("tie_word_embeddings"),
        "left_out": found.left_out,
    }
    for name, read in (("kv_heads", "num_key_value_heads"), ("head_size", "head_dim")):
        if read in found.values:
            sizes[name] = found.count(read)
    return sizes


def row_sizes(row: ModelRow) -> dict[str, Any]:  # Any: fields differ in type
    """The fields of a `LlamaModel` that a row says."""
    return {
        "hidden": row.size("hidden_size"),
        "heads": row.size("head_num"),
        "kv_heads": row.size("kv_head_num"),
        "head_size": row.size("head_size"),
        "intermediate": row.size("intermediate_size"),
        "vocabulary": row.size("vocab_size"),
    }


def _window(found: ConfigFields) -> int:
    """The window of all layers, 0 for none; InvalidArgumentError where only some layers have it."""
    if "sliding_window" not in found.values:
        return 0
    if "use_sliding_window" not in found.values:
        return found.count("sliding_window")
    kinds = found.values["layer_types"]
    layers, full = found.size("num_hidden_layers"), found.count("max_window_layers")
    window = found.count("sliding_window") if found.flag("use_sliding_window") else 0
    if kinds is None:
        kinds = ["full_attention" if not window or k < full else "sliding_attention" for k in range(layers)]
    if kinds == ["full_attention"] * layers:
        return 0
    if kinds == ["sliding_attention"] * layers and window:
        return window
    raise InvalidArgumentError(
        f"{found.path}: max_window_layers={full} (or layer_types) gives some of the {layers} layers a window and "
        "others none; give all of them one, or none"
    )
