"""The assumptions that leave no size unknown, counted by op and described in words.

unknown sizes were taken as 32: 2 x MatMul, 1 x Placeholder
"""

from __future__ import annotations

from collections import Counter

from ..dtypes import Shape


class Assumptions:
    """The assumptions of one inference; if `size` is None nothing is assumed."""

    def __init__(self, size: int | None) -> None:
        self.size = size
        self._unknown_sizes: Counter[str] = Counter()
        self._unknown_shapes: Counter[str] = Counter()
        self._contradictions: Counter[str] = Counter()
        self.unused_feeds: list[str] = []

    def __bool__(self) -> bool:
        """Whether anything was assumed so far about sizes or shapes."""
        return bool(self._unknown_shapes or self._unknown_sizes)

    def closed(self, op: str, shape: Shape, first: Shape) -> Shape:
        """`shape`, of an output of that op, with unknown sizes assumed; `first` is the shape of the first input."""
        if shape is None:
            self._unknown_shapes[op] += 1
            return () if first is None else first
        if None in shape:
            self._unknown_sizes[op] += 1
            return tuple(self.size if size is None else size for size in shape)
        return shape

    def contradict(self, op: str) -> None:
        """Notes that the op's rule contradicts an assumption made earlier: in the run the sizes would be different."""
        self._contradictions[op] += 1

    def in_words(self) -> list[str]:
        """The assumptions in words, one line per kind."""
        kinds = (
            (self._unknown_sizes, f"unknown sizes were taken as {self.size}"),
            (self._unknown_shapes, "unknown shapes were taken as those of the first input"),
            (self._contradictions, "assumed sizes fit no rule and were passed on"),
        )
        unused = [f"feeds that no part of the step reads: {', '.join(self.unused_feeds)}"] if self.unused_feeds else []
        listed = [(text, [f"{count} x {op}" for op, count in sorted(counter.items())]) for counter, text in kinds]
        return [f"{text}: {', '.join(counts)}" for text, counts in listed if counts] + unused
