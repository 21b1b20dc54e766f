"""The properties of all nodes of a cut as a column of integers: nodes of one kind share one `NodeProperties`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Numbers, positions
from ..graph import Graph
from ..ops.properties import NodeProperties


class KindColumn:
    """`kinds[of[n]]` are the properties of node number `n`; `of` is -1 where a node was removed.

    Numbers are the ids of the graph that is cut, followed by those of generated nodes.
    """

    def __init__(self, graph: Graph) -> None:
        """The kinds of the nodes of `graph`; every transfer of an earlier partitioning is a kind of its own."""
        kinds, of = graph.distinct_properties()
        self.kinds: list[NodeProperties] = list(kinds)
        self.of: Numbers = of.copy()
        for node in positions(graph.details()[1] >= 0).tolist():
            self.replace(node, graph.node_properties(node))

    def __getitem__(self, number: int) -> NodeProperties:
        return self.kinds[int(self.of[number])]

    def replace(self, number: int, properties: NodeProperties) -> None:
        """Replaces the properties of one node; others of its kind keep theirs."""
        self.of[number] = len(self.kinds)
        self.kinds.append(properties)

    def extend(self, kinds: Sequence[NodeProperties], of: Numbers) -> None:
        """Appends nodes of new kinds: `kinds[of[k]]` are the properties of the k-th of them."""
        self.of = np.concatenate([self.of, of + len(self.kinds)])
        self.kinds += kinds
