"""The data edges of a graph by node, for passes that ask for the neighbours of many nodes.

They are a snapshot: later changes of the graph do not show. Control edges, source and sink are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import starts_of
from ..columns import SINK_ID, SOURCE_ID, EdgeArrays, Ids
from ..edge_ends import Output, by_consumer
from ..graph import Graph


class DataEdges:
    """Neighbours by node id."""

    def __init__(self, graph: Graph) -> None:
        """Reads all edges of `graph`."""
        edges = graph.edge_arrays()
        data = np.flatnonzero((edges.dst_input >= 0) & (edges.src != SOURCE_ID) & (edges.dst != SINK_ID))
        by_dst = data[by_consumer(edges.dst[data], edges.dst_input[data])]
        by_src = data[np.argsort(edges.src[data], kind="stable")]
        self._first_in: list[int] = starts_of(edges.dst[data], graph.num_node_ids).tolist()
        self._first_out: list[int] = starts_of(edges.src[data], graph.num_node_ids).tolist()
        self._sources = _pairs(edges, edges.src, by_dst)
        self._readers = _pairs(edges, edges.dst, by_src)

    def sources(self, node: int) -> Sequence[Output]:
        """The outputs that a node reads, by input port."""
        return self._sources[self._first_in[node] : self._first_in[node + 1]]

    def readers(self, node: int) -> Sequence[Output]:
        """The consumers of a node's outputs: (consumer, port of this node), one per data edge."""
        return self._readers[self._first_out[node] : self._first_out[node + 1]]


def _pairs(edges: EdgeArrays, nodes: Ids, order: np.typing.NDArray[np.intp]) -> list[Output]:
    return list(zip(nodes[order].tolist(), edges.src_output[order].tolist(), strict=True))
