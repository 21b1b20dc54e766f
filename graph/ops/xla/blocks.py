"""The attrs of the ops that cut an array into equal blocks along all axes, or join them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ....errors import InvalidArgumentError


class Blocks(NamedTuple):
    """How many blocks there are along each axis, and how many elements at the end of each axis are padding."""

    counts: Sequence[int]
    paddings: Sequence[int]

    @classmethod
    def of(cls, attrs: Mapping[str, Any], name: str, rank: int, num_blocks: int) -> Blocks:
        """Reads attr `name` and the paddings; InvalidArgumentError for another rank or number of blocks."""
        counts = tuple(attrs[name])
        paddings = tuple(attrs["paddings"]) or (0,) * len(counts)
        if len(counts) != rank or len(paddings) != rank:
            raise InvalidArgumentError(f"'{name}' and 'paddings' must have {rank} numbers, got {counts}, {paddings}")
        if any(count < 1 for count in counts) or any(width < 0 for width in paddings):
            raise InvalidArgumentError(f"'{name}' must be positive, 'paddings' not negative: {counts}, {paddings}")
        if prod(counts) != num_blocks:
            raise InvalidArgumentError(
                f"'N' must match number of slices {prod(counts)} from '{name}', but got {num_blocks}."
            )
        return cls(counts, paddings)

    def block(self, whole: Sequence[int]) -> list[int]:
        """The sizes of a block; InvalidArgumentError if the padded array cannot be cut into them."""
        for axis, (size, width, count) in enumerate(zip(whole, self.paddings, self.counts, strict=True)):
            if (size + width) % count:
                raise InvalidArgumentError(
                    f"size {size} of axis {axis} with padding {width} must be divisible by 'num_splits' {count}."
                )
        return [(n + width) // count for n, width, count in zip(whole, self.paddings, self.counts, strict=True)]

    def whole(self, block: Sequence[int]) -> list[int]:
        """The sizes of the array without padding; InvalidArgumentError if there is more padding than array."""
        sizes = [n * count - width for n, width, count in zip(block, self.paddings, self.counts, strict=True)]
        if any(size < 0 for size in sizes):
            raise InvalidArgumentError(f"'paddings' {self.paddings} are larger than the array")
        return sizes
