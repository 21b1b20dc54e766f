"""DLRM: two perceptrons around embedding tables and the dot products of all pairs of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Self

from ...errors import InvalidArgumentError
from .description import ModelDescription, check_sizes
from .fields import ConfigFields, ConfigRules, read_fields

RULES = (ConfigRules("dlrm", sizes=("dense_features", "tables", "embedding", "bottom", "top")),)


@dataclass(frozen=True, slots=True)
class DlrmModel(ModelDescription):
    """A recommendation model (Naumov et al.: Deep Learning Recommendation Model, 2019).

    dense_features    numbers of a sample
    tables            rows of each embedding table; a sample looks up one row of each. Ranks of dp share them out
    embedding         width of the tables
    bottom            units of the perceptron over the dense features; the last number is `embedding`
    top               units of the perceptron over the bottom's result and all pairs' dot products; the last number is 1

    Every layer has biases and ReLU, but for the last, whose sigmoid is the answer. A model as a file is a JSON object
    {"model_type": "dlrm"} with these five fields. Raises InvalidArgumentError for sizes that are not positive and
    layers that do not fit together.
    """

    dense_features: int
    tables: tuple[int, ...]
    embedding: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    layers: int = field(default=1, init=False, repr=False)  # the model is one stage
    left_out: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    def __post_init__(self) -> None:
        check_sizes(self, dense_features=self.dense_features, embedding=self.embedding)
        for name in ("tables", "bottom", "top"):
            sizes = tuple(getattr(self, name))
            object.__setattr__(self, name, sizes)
            check_sizes(self, **{f"number of {name}": len(sizes)}, **{f"{name}[{k}]": it for k, it in enumerate(sizes)})
        for name, wanted in (("bottom", self.embedding), ("top", 1)):
            if getattr(self, name)[-1] != wanted:
                raise InvalidArgumentError(
                    f"DlrmModel: {name} ends in {getattr(self, name)[-1]}; its last layer has {wanted} units"
                )

    @classmethod
    def from_config(cls, path: Path | str) -> Self:
        """The model of a JSON file with `model_type` "dlrm"; raises as `ModelDescription.from_config`."""
        found = read_fields(path, RULES)
        return cls(
            dense_features=found.size("dense_features"),
            tables=_sizes(found, "tables"),
            embedding=found.size("embedding"),
            bottom=_sizes(found, "bottom"),
            top=_sizes(found, "top"),
        )

    @property
    def interactions(self) -> int:
        """Pairs among the bottom's result and the looked-up rows."""
        vectors = len(self.tables) + 1
        return vectors * (vectors - 1) // 2

    @property
    def bottom_sizes(self) -> tuple[int, ...]:
        """Inputs and units of the first perceptron."""
        return (self.dense_features, *self.bottom)

    @property
    def top_sizes(self) -> tuple[int, ...]:
        """Inputs and units of the second perceptron."""
        return (self.embedding + self.interactions, *self.top)

    @property
    def table_parameters(self) -> int:
        """Of all embedding tables."""
        return sum(self.tables) * self.embedding

    @property
    def parameters(self) -> int:
        """Tables, and (inputs + 1) * units of each dense layer."""
        return self.table_parameters + self._dense_parameters

    @property
    def active_parameters(self) -> int:
        """The dense layers, and a row of each table."""
        return self._dense_parameters + len(self.tables) * self.embedding

    @property
    def _dense_parameters(self) -> int:
        return sum((n + 1) * m for sizes in (self.bottom_sizes, self.top_sizes) for n, m in pairwise(sizes))

    @property
    def attention_width(self) -> int:
        """0: there is no attention."""
        return 0

    def flops_per_token(self, seq_len: int = 1) -> int:
        """Operations of one training step per sample: 6 per value of a dense layer and of a pair's dot product.

        Looking a row up multiplies nothing. `seq_len` has no effect.
        """
        return 6 * (self._dense_parameters + self.interactions * self.embedding)

    def rows_of(self, sequence_length: int) -> None:
        """None: a sample is no sequence."""

    @property
    def cut_by_tensor_parallel(self) -> Mapping[str, int]:
        """Nothing: tables are shared out whole over dp, and the perceptrons are on every device."""
        return {}


def _sizes(found: ConfigFields, name: str) -> tuple[int, ...]:
    value = found.values[name]
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise found.wrong(name, "a list of numbers")
    return tuple(value)
