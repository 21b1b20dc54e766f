"""The names and input strings of imported nodes, turned into numbers while they are read.

Flows in: names and input strings of some nodes at a time. Flows out: all names, the index of each, and per input string
the index of the node it names. Always holds: a string that is just a name read before is forgotten at once, so that
reading a graph holds few such strings at any time; every other string is kept, with its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

import numpy as np

from ..columns import Ids

UNRESOLVED = -1


class InputTexts:
    """One row an input string: the node it names, or the string itself where that takes a closer look."""

    def __init__(self, *, keep_all: bool) -> None:
        """With `keep_all` every string is kept: names may stand for other nodes than those of this import."""
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.counts: list[int] = []
        self._known: Mapping[str, int] = {} if keep_all else self.index
        self._sources: list[Ids] = []
        self._num_rows = 0
        self._kept: dict[int, str] = {}

    def add(self, names: Sequence[str], texts: Sequence[str], counts: Iterable[int]) -> None:
        """The next nodes: names, all their input strings in a row, and how many each has."""
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
        """Per row the index of the node that its string names, UNRESOLVED where the string was kept."""
        return np.concatenate(self._sources) if self._sources else np.zeros(0, np.int32)

    @property
    def kept(self) -> Mapping[int, str]:
        """The strings that were kept, by ascending row."""
        return self._kept
