"""The edges that enter or leave each node, as an index that is built once and then follows single changes.

Edges of a node come in insertion order. Removing one moves the last into its place while the node has at most eight
edges, and closes the gap otherwise: this is the order of TensorFlow's EdgeSet, which generated names depend on.
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
        edges = self._lists.get(node)
        if edges is None:
            known = node + 1 < len(self._starts)
            edges = self._order[self._starts[node] : self._starts[node + 1]].tolist() if known else []
            self._lists[node] = edges
        return edges

    def add(self, node: int, edge: int) -> None:
        self.of(node).append(edge)

    def remove(self, node: int, edge: int) -> None:
        """Removes an edge in the way of TensorFlow's EdgeSet (see the file's first lines)."""
        edges = self.of(node)
        if len(edges) > _INLINE:
            edges.remove(edge)
            return
        edges[edges.index(edge)] = edges[-1]
        edges.pop()
