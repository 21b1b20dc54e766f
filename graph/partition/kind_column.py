"""The properties of all nodes of a cut, as a column: nodes of one kind share one object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Numbers
from ..graph import Graph
from ..ops.properties import NodeProperties


class KindColumn:
    """`kinds[of[n]]` are the properties of node number `n`; `of` is -1 where a node was removed.

    Numbers are the ids of a graph and, past them, those of nodes that are made for its cut.
    """

    def __init__(self, graph: Graph) -> None:
        """The properties of the nodes of `graph`; a transfer of an earlier partitioning has some of its own."""
        kinds, of = graph.distinct_properties()
        self.kinds: list[NodeProperties] = list(kinds)
        self.of: Numbers = of.copy()
        for node in np.flatnonzero(graph.details()[1] >= 0).tolist():
            self.replace(node, graph.node_properties(node))

    def __getitem__(self, number: int) -> NodeProperties:
        return self.kinds[int(self.of[number])]

    def replace(self, number: int, properties: NodeProperties) -> None:
        """Gives one node properties of its own."""
        self.of[number] = len(self.kinds)
        self.kinds.append(properties)

    def extend(self, kinds: Sequence[NodeProperties], of: Numbers) -> None:
        """Appends nodes of new kinds: `kinds[of[k]]` are the properties of the k-th of them."""
        self.of = np.concatenate([self.of, of + len(self.kinds)])
        self.kinds += kinds
