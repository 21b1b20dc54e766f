"""The order in which passes visit nodes; it depends on node and edge ids alone, as TensorFlow's does.

So of two equal nodes TensorFlow and Partita keep the same one. This is why `arrays.ready_order` is not used here: its
order is topological too, but another one.
"""

from __future__ import annotations

from ..arrays import grouped
from ..columns import SOURCE_ID
from ..graph import Graph


def reverse_post_order(graph: Graph) -> list[int]:
    """All nodes that the source reaches, each before its consumers (except along edges that close a loop).

    Depth first; of the out-edges of a node in id order, the last is followed first.
    """
    edges = graph.edge_arrays()
    edges_from = grouped(edges.src, graph.num_node_ids)
    starts, consumers = edges_from.starts.tolist(), edges.dst[edges_from.members].tolist()
    finished: list[int] = []
    seen = bytearray(graph.num_node_ids)
    stack = [SOURCE_ID]
    while stack:
        node = stack.pop()
        if node < 0:
            finished.append(~node)
        elif not seen[node]:
            seen[node] = True
            stack.append(~node)
            stack += consumers[starts[node] : starts[node + 1]]
    finished.reverse()
    return finished
