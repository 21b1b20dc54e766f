"""Edges as columns of their ends, and the order of edges by consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .arrays import Flags, Integers, Numbers
from .columns import CONTROL_SLOT

Output = tuple[int, int]
"""(node, port); a node is given by its id, or in a `JoinedGraph` by its joint number"""


class EdgeEnds(NamedTuple):
    """Both ends of edges, one column each: node ids (or other numbers of nodes) and slots."""

    src: Integers
    src_output: Integers
    dst: Integers
    dst_input: Integers

    def at(self, chosen: Flags | Integers | slice) -> EdgeEnds:
        """A selection of edges, by positions, a range or flags."""
        return EdgeEnds(*(column[chosen] for column in self))


def all_edges(records: Sequence[EdgeEnds]) -> EdgeEnds:
    """The edges of several records, concatenated."""
    return EdgeEnds(*map(np.concatenate, zip(*records, strict=True)))


def by_consumer(dst: Integers, dst_input: Integers) -> Numbers:
    """The order of edges by consumer: data inputs by port, then control inputs in insertion order.

    `sorted(range(len(dst)), key=lambda e: (dst[e], dst_input[e] == CONTROL_SLOT, dst_input[e]))`, as nodes list inputs.
    """
    return np.lexsort((dst_input, dst_input == CONTROL_SLOT, dst))
