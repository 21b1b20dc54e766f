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
    kinds: dict[int, int] = {}
    kind_of = np.array([-1 if p is None else kinds.setdefault(id(p), len(kinds)) for p in properties], np.int64)
    first = np.unique(kind_of, return_index=True)[1]  # kinds are numbered in order of appearance already
    return [p for i in first.tolist() if (p := properties[i]) is not None], kind_of


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
