"""A table of one integer per port and kind of node, looked up for arrays of (kind, port) at once.

A port that a kind does not have reads as 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import Integers, Numbers
from .ops.properties import NodeProperties


def distinct_properties(properties: Sequence[NodeProperties | None]) -> tuple[list[NodeProperties], Numbers]:
    """The distinct properties objects in order of appearance, and for each node the index of its own (-1 for None)."""
    kinds = [p for p in dict.fromkeys(properties) if p is not None]  # properties compare by identity
    number: dict[NodeProperties | None, int] = dict(zip(kinds, range(len(kinds)), strict=True))
    number[None] = -1
    return kinds, np.array(list(map(number.__getitem__, properties)), np.int64)


class PortTable:
    """One integer per port of each kind of node."""

    def __init__(self, facts: Sequence[Sequence[int]]) -> None:
        """`facts[kind][port]` is the integer of a port."""
        self._counts = np.array([len(ports) for ports in facts], np.int64)
        self._starts = np.cumsum(self._counts) - self._counts  # the ports of a kind are consecutive
        self._flat = np.array([fact for ports in facts for fact in ports] + [0], np.int64)

    def at(self, kind: Numbers, port: Integers) -> Numbers:
        """The integer of port `port[k]` of kind `kind[k]`, for all k; 0 where there is no such port."""
        if not len(kind):
            return np.zeros(0, np.int64)
        # `facts[kind[k]][port[k]] if port exists else 0` for all k. Rows without such a port look up row 0 and are
        # replaced afterwards.
        exists = (port >= 0) & (port < self._counts[kind])
        return np.where(exists, self._flat[np.where(exists, self._starts[kind] + port, 0)], 0)
