"""Reads a Hugging Face config.json by the rules of a family, and refuses what it does not know.

    rules = ConfigRules("gpt2", sizes=("n_layer", "n_embd"), defaults={"n_positions": 1024}, ...)
    found = read_fields(path, [rules])
    found.size("n_layer"), found.size("n_positions")

A field is one of: read; without effect on the mathematics; of one value only; left out (the model does without, and
says so); or unknown. An unknown field is an error that names it, unless it is null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InvalidArgumentError, NotFoundError
from ...graph.suggestions import suggestion

WITHOUT_EFFECT = frozenset(
    (
        *("_name_or_path", "transformers_version", "auto_map", "torch_dtype", "dtype", "use_cache"),
        *("initializer_range", "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id"),
        *("sep_token_id", "cls_token_id", "mask_token_id", "decoder_start_token_id", "bos_token"),
        *("eos_token", "pad_token", "return_dict", "return_dict_in_generate", "output_attentions"),
        *("output_hidden_states", "gradient_checkpointing", "attn_implementation", "_attn_implementation"),
        *("_flash_attn_2_enabled", "name_or_path", "chunk_size_feed_forward", "task_specific_params"),
        *("finetuning_task", "problem_type", "label2id", "id2label", "num_labels", "torchscript"),
        *("use_bfloat16", "tokenizer_class", "prefix", "max_length", "min_length", "do_sample"),
        *("early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k"),
        *("top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size"),
        *("encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores"),
        *("forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values"),
        *("exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens"),
    )
)
"""fields of every family that say how a model is stored, started, labelled or sampled from"""

SAME: dict[str, tuple[object, ...]] = {
    "is_encoder_decoder": (False,),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "pruned_heads": ({}, None),
    "partial_rotary_factor": (1.0, None),
}
"""fields of every family that must have one of these values"""

NO_DROPOUT = "dropout is not there; the model is built without it"
LEFT_OUT = {"quantization_config": "the type of products is the precision of the split"}
"""fields of every family that the model does without, and why"""


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """What a family does with the fields of a config.json of one `model_type`.

    `sizes` must be in the file. `defaults` are read, with what transformers takes when they are not there. `same` must
    have one of the given values. `left_out` maps fields to what is not there, said when their value is not 0, false or
    null. `without_effect` are ignored, like those of every family. `architectures` are those that the family builds.
    """

    model_type: str
    sizes: tuple[str, ...]
    defaults: Mapping[str, object] = field(default_factory=dict)
    same: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    without_effect: frozenset[str] = frozenset()
    architectures: tuple[str, ...] = ()

    def named(self) -> set[str]:
        """All fields that this family speaks of."""
        return {*self.sizes, *self.defaults, *self.same, *self.left_out, *self.without_effect}


@dataclass(frozen=True, slots=True)
class ConfigFields:
    """The fields of a file that a family reads; absent ones have their default. `left_out` is what the model lacks."""

    path: Path
    rules: ConfigRules
    values: Mapping[str, object]
    left_out: tuple[str, ...]

    def size(self, name: str) -> int:
        """A positive whole number."""
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.wrong(name, "a positive whole number")
        return value

    def count(self, name: str) -> int:
        """A whole number, 0 for null."""
        value = self.values[name] or 0
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(name, "a whole number, 0 or more, or null")
        return value

    def number(self, name: str) -> float:
        """A positive number."""
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise self.wrong(name, "a positive number")
        return float(value)

    def flag(self, name: str) -> bool:
        """True or false; null is false."""
        value = self.values[name]
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return bool(value)

    def wrong(self, name: str, wanted: str) -> InvalidArgumentError:
        """The error for a field that has no value of the wanted kind."""
        return InvalidArgumentError(f"{self.path}: {name}={self.values[name]!r} is not {wanted}; give that")


def config_values(path: Path | str) -> tuple[Path, dict[str, Any]]:  # Any: the values of JSON
    """The file (of a folder its config.json) and its JSON object.

    Raises NotFoundError for no file, InvalidArgumentError for no JSON object.
    """
    file = Path(path)
    if file.is_dir():
        file /= "config.json"
    try:
        values = json.loads(file.read_bytes())
    except OSError as error:
        raise NotFoundError(f"{file}: {error.strerror or error}; give a config.json") from error
    except ValueError as error:
        raise InvalidArgumentError(f"{file}: no JSON ({error}); give a config.json") from error
    if not isinstance(values, dict):
        raise InvalidArgumentError(f"{file}: the JSON is no object; give a config.json")
    return file, values


def read_fields(path: Path | str, rules: Sequence[ConfigRules]) -> ConfigFields:
    """The fields of a config.json whose `model_type` is that of one of the rules.

    Raises InvalidArgumentError for another type, a missing size, and, by name, for a field that is not known or has a
    value that the family does not have; as `config_values` too.
    """
    file, values = config_values(path)
    model_type = values.pop("model_type", None)
    chosen = next((it for it in rules if it.model_type == model_type), None)
    if chosen is None:
        known = [it.model_type for it in rules]
        raise InvalidArgumentError(
            f"{file}: model_type={model_type!r} is not of this family{suggestion(str(model_type), known)}"
        )
    _check_known(file, values, chosen)
    _check_same(file, values, chosen)
    missing = [name for name in chosen.sizes if values.get(name) is None]
    if missing:
        raise InvalidArgumentError(f"{file}: {missing[0]!r} is missing; a {model_type} needs {', '.join(chosen.sizes)}")
    reasons = {**LEFT_OUT, **chosen.left_out}
    notes = tuple(
        f"{name}={json.dumps(value)}: {reasons[name]}" for name, value in values.items() if name in reasons and value
    )
    read = {name: value for name, value in values.items() if name in chosen.sizes or name in chosen.defaults}
    return ConfigFields(file, chosen, {**chosen.defaults, **read}, notes)


def _check_known(file: Path, values: Mapping[str, object], rules: ConfigRules) -> None:
    known = {*WITHOUT_EFFECT, *SAME, *LEFT_OUT, "architectures", *rules.named()}
    for name, value in values.items():
        if name not in known and value is not None:
            raise InvalidArgumentError(
                f"{file}: field {name!r} ({json.dumps(value)}) of a {rules.model_type} is not known and may change the "
                "mathematics; remove it if it does not, or build the model by hand"
            )


def _check_same(file: Path, values: Mapping[str, object], rules: ConfigRules) -> None:
    for name, allowed in {**SAME, **rules.same}.items():
        if name in values and not any(values[name] is it or values[name] == it for it in allowed):
            only = " or ".join(map(json.dumps, allowed))
            raise InvalidArgumentError(
                f"{file}: {name}={json.dumps(values[name])} changes the mathematics, and a {rules.model_type} is built "
                f"for {only} only"
            )
    architectures = values.get("architectures")
    for architecture in architectures if isinstance(architectures, list) else ():
        if architecture not in rules.architectures:
            raise InvalidArgumentError(
                f"{file}: architectures={json.dumps(architecture)} has another head; a {rules.model_type} is built as "
                f"{' or '.join(rules.architectures)}"
            )
