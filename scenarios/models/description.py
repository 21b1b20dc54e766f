"""What all models say of themselves: sizes that a split cuts, parameters, and flops of a token.

A family is a frozen dataclass of sizes. Nothing here builds a graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from ...errors import InvalidArgumentError


class ModelDescription(ABC):
    """A model as sizes."""

    __slots__ = ()

    layers: int
    """the number of blocks, which pipeline stages share out"""

    left_out: tuple[str, ...]
    """what a config.json asks for and the model does without, as sentences: dropout, losses beside the cross entropy"""

    @classmethod
    @abstractmethod
    def from_config(cls, path: Path | str) -> Self:
        """The model of a Hugging Face config.json, or of the folder that holds one.

        Raises InvalidArgumentError for a file that is no such JSON, a `model_type` of another family, a size that is
        missing or none, and, by name, for a field that changes the mathematics and is not known.
        """

    @property
    @abstractmethod
    def parameters(self) -> int:
        """The number of trained values, tied ones once, without padding."""

    @property
    def active_parameters(self) -> int:
        """The parameters that one token meets: of the experts only those it is sent to."""
        return self.parameters

    @property
    @abstractmethod
    def attention_width(self) -> int:
        """Half of heads * (query size + value size): the hidden size where a head has hidden / heads of both."""

    @abstractmethod
    def rows_of(self, sequence_length: int) -> int | None:
        """The rows that a sequence of so many tokens makes; None for a model without sequences."""

    def attended(self, sequence_length: int) -> int:
        """The positions that a token is compared with, by the convention of `flops_per_token`."""
        return sequence_length

    def flops_per_token(self, seq_len: int) -> int:
        """Operations of one training step per token: 6 N + 12 L h s.

        N is `active_parameters`, L the layers, h `attention_width`, s the sequence length (Chowdhery et al.: PaLM,
        2022, appendix B). Two per parameter forwards and four backwards; attention counts all s keys, also where a
        causal mask hides half of them; recomputation does not count. By this convention embeddings are part of N.
        """
        if seq_len < 1:
            raise InvalidArgumentError(f"seq_len={seq_len} is no positive number; give 1 or more")
        return 6 * self.active_parameters + 12 * self.layers * self.attention_width * self.attended(seq_len)

    @property
    def has_cache(self) -> bool:
        """Whether tokens are predicted one by one, so that keys and values of earlier ones are worth keeping."""
        return False

    @property
    def positions(self) -> int | None:
        """The longest sequence, where positions are learned; None where any length works."""
        return None

    @property
    @abstractmethod
    def cut_by_tensor_parallel(self) -> Mapping[str, int]:
        """The sizes that tp must divide, by name; "heads" is one of them unless there are none."""

    @property
    def shared_heads(self) -> int | None:
        """Heads of keys and values that several query heads share; None where each has its own."""
        return None

    @property
    def shared_by_expert_parallel(self) -> Mapping[str, int]:
        """The counts that ep must divide, by name; empty for a model without experts."""
        return {}


def check_sizes(model: object, **sizes: int) -> None:
    """InvalidArgumentError for a size that is no positive whole number."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidArgumentError(f"{type(model).__name__}: {name}={size!r} is no positive number; give 1 or more")


def padded(vocabulary: int, multiple: int, tp: int) -> int:
    """The vocabulary made a multiple of `multiple` * tp, so that each tp rank has equally many rows."""
    step = multiple * tp
    return -(-vocabulary // step) * step
