"""Which edges touch a node, at one end: an index that is built at once and kept up to date where it is used.

Flows in: the column of node ids at one end of all edges, then single additions and removals. Flows out: edge ids per
node. Always holds: edges of a node come in insertion order; removing one moves the last into its place while the node
has at most eight edges (the order TensorFlow's EdgeSet shows, which generated names depend on), and closes the gap
otherwise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .arrays import grouped

_INLINE = 8


class Adjacency:
    """Edge ids per node at one end of the edges."""

    __slots__ = ("_lists", "_order", "_starts")

    def __init__(self, ends: npt.NDArray[np.int32], num_nodes: int) -> None:
        """`ends[e]` is the node at this end of edge `e`, or -1 for a removed edge."""
        edges = grouped(ends + 1, num_nodes + 1)  # owner 0 has the removed edges
        self._order = edges.members
        self._starts = edges.starts[1:]
        self._lists: dict[int, list[int]] = {}

    def of(self, node: int) -> list[int]:
        """Edges of a node; the list itself, not to be changed by the caller."""
        found = self._lists.get(node)
        if found is None:
            known = node + 1 < len(self._starts)
            found = self._order[self._starts[node] : self._starts[node + 1]].tolist() if known else []
            self._lists[node] = found
        return found

    def add(self, node: int, edge: int) -> None:
        """Appends an edge."""
        self.of(node).append(edge)

    def remove(self, node: int, edge: int) -> None:
        """Takes an edge out."""
        edges = self.of(node)
        if len(edges) > _INLINE:
            edges.remove(edge)
            return
        edges[edges.index(edge)] = edges[-1]
        edges.pop()
