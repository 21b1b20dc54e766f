"""The bytes in use in one memory over time.

For 10 bytes of activations from 0 to 5 ns and 20 bytes of gradients from 5 to 9 ns

    at_ns            0    5    9
    activations      10   0    0
    gradients        0    20   0
    total            10   20   0         from 5 ns until 9 ns 20 bytes are in use

Of two changes at one instant the release comes first, and what is needed for 0 ns counts for nothing: the largest total
is the peak.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .categories import MEMORY_CATEGORIES

if TYPE_CHECKING:
    from ....graph.arrays import Numbers
    from .spans import HeldSpans


class MemoryCurve(NamedTuple):
    """From `at_ns[i]` until `at_ns[i + 1]`, the last until the end of the step, `by_category[...][i]` bytes are in use.

    `at_ns` ascends from 0 and has the instants at which something changes. `by_category` has all of
    `MEMORY_CATEGORIES`.
    """

    at_ns: Numbers
    by_category: dict[str, Numbers]

    @property
    def total(self) -> Numbers:
        """The bytes of all categories together."""
        return reduce(np.add, self.by_category.values())


def curve_of(spans: HeldSpans, memory: int) -> MemoryCurve:
    """The curve of one memory, by number."""
    of = spans.memory == memory
    start_ns, end_ns, size_bytes, category = (
        column[of] for column in (spans.start_ns, spans.end_ns, spans.size_bytes, spans.category)
    )
    instants, place = np.unique(np.concatenate([[0], start_ns, end_ns]), return_inverse=True)
    changes = np.zeros((len(MEMORY_CATEGORIES), len(instants)), np.int64)
    starts, ends = np.split(place.reshape(-1)[1:], 2)
    np.add.at(changes, (category, starts), size_bytes)
    np.subtract.at(changes, (category, ends), size_bytes)
    # The step begins at 0, whether or not something is needed then.
    changed = np.flatnonzero(changes.any(axis=0) | (instants == 0))
    in_use = np.cumsum(changes[:, changed], axis=1)
    return MemoryCurve(instants[changed], dict(zip(MEMORY_CATEGORIES, in_use, strict=True)))
