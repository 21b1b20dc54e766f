"""Some edges of a graph by their ends, and the order in which nodes list them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .arrays import Flags, Integers, Numbers
from .columns import CONTROL_SLOT


class EdgeEnds(NamedTuple):
    """Both ends of some edges, a column each: ids (or numbers that stand for nodes) and slots."""

    src: Integers
    src_output: Integers
    dst: Integers
    dst_input: Integers

    def at(self, chosen: Flags | Integers | slice) -> EdgeEnds:
        """The edges at some positions, in a range, or where a flag is set."""
        return EdgeEnds(*(column[chosen] for column in self))


def all_edges(some: Sequence[EdgeEnds]) -> EdgeEnds:
    """All edges of several records, one after the other."""
    return EdgeEnds(*map(np.concatenate, zip(*some, strict=True)))


def by_consumer(dst: Integers, dst_input: Integers) -> Numbers:
    """The order of edges by consumer: data inputs by port, then control inputs as they came.

    `sorted(range(len(dst)), key=lambda e: (dst[e], dst_input[e] == CONTROL_SLOT, dst_input[e]))`, as nodes list inputs.
    """
    return np.lexsort((dst_input, dst_input == CONTROL_SLOT, dst))
