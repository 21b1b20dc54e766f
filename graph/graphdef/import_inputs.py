"""Turns the names and input strings of imported nodes into numbers while they are read.

A string that is just the name of an earlier node becomes that node's index at once and is dropped, so reading a graph
holds few strings at any time. Other strings are kept with their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from ..columns import Ids

UNRESOLVED = -1


@dataclass(frozen=True, slots=True)
class NamedNodes:
    """Names by index, and the index of each name."""

    names: list[str]
    index: dict[str, int]


class InputTexts:
    """One row per input string: the index of the node that it names, or the string itself if it needs parsing."""

    def __init__(self, *, keep_all: bool) -> None:
        """With `keep_all` every string is kept, because names may be mapped to nodes outside this import."""
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.counts: list[int] = []
        self._known: Mapping[str, int] = {} if keep_all else self.index
        self._sources: list[Ids] = []
        self._num_rows = 0
        self._kept: dict[int, str] = {}

    def add(self, names: Sequence[str], texts: Sequence[str], counts: Iterable[int]) -> None:
        """Adds the next nodes: their names, all their input strings in one list, and how many strings each has."""
        first = len(self.names)
        self.names += names
        self.index.update(zip(names, range(first, first + len(names)), strict=True))
        self.counts += counts
        sources = np.fromiter(map(self._known.get, texts, repeat(UNRESOLVED)), np.int32, len(texts))
        for at in np.flatnonzero(sources == UNRESOLVED).tolist():
            self._kept[self._num_rows + at] = texts[at]
        self._sources.append(sources)
        self._num_rows += len(texts)

    def sources(self) -> Ids:
        """Per row the index of the node that its string names, UNRESOLVED if the string was kept."""
        return np.concatenate(self._sources) if self._sources else np.zeros(0, np.int32)

    @property
    def kept(self) -> Mapping[int, str]:
        """The strings that were kept, by ascending row."""
        return self._kept
