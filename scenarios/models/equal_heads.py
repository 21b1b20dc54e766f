"""What GPT, BERT and ViT have in common: heads that share out the hidden size, and blocks with biases and two norms."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from ...errors import InvalidArgumentError
from .description import ModelDescription


class EqualHeads(ModelDescription):
    """A transformer whose heads of queries, keys and values have hidden / heads numbers each."""

    __slots__ = ()

    hidden: int
    heads: int
    intermediate: int

    def check_heads(self) -> None:
        """InvalidArgumentError unless the heads can share out the hidden size."""
        if self.hidden % self.heads:
            raise InvalidArgumentError(
                f"{type(self).__name__}: heads={self.heads} does not divide hidden={self.hidden}"
            )

    @property
    def head_size(self) -> int:
        """The width of a head."""
        return self.hidden // self.heads

    @property
    def softmax_scale(self) -> float:
        """What the scores of attention are multiplied with: 1 / sqrt(head size)."""
        return 1 / sqrt(self.head_size)

    @property
    def block_parameters(self) -> int:
        """4 h^2 + 2 h i + 9 h + i.

        Products of 3 h^2, h^2, h i and i h values, their biases 3 h + h + i + h, two norms of 2 h.
        """
        h, i = self.hidden, self.intermediate
        return 4 * h * h + 2 * h * i + 9 * h + i

    @property
    def attention_width(self) -> int:
        """The hidden size."""
        return self.hidden

    @property
    def cut_by_tensor_parallel(self) -> Mapping[str, int]:
        """Heads and feed-forward units."""
        return {"heads": self.heads, "intermediate": self.intermediate}
