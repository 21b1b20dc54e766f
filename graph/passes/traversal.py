"""Orders in which passes visit the nodes of a graph.

Flows in: a graph. Flows out: node ids. Always holds: the order depends on the ids of nodes and edges alone, so that of
two equal nodes TensorFlow and we keep the same one.
"""

from __future__ import annotations

from ..arrays import grouped
from ..columns import SOURCE_ID
from ..graph import Graph


def reverse_post_order(graph: Graph) -> list[int]:
    """All nodes that the source leads to, each before what it leads to (back edges of loops aside).

    Depth first; of the consumers of a node, edges in id order, the last one is gone into first.
    """
    edges = graph.edge_arrays()
    edges_from = grouped(edges.src, graph.num_node_ids)
    starts, consumers = edges_from.starts.tolist(), edges.dst[edges_from.members].tolist()
    left: list[int] = []
    seen = bytearray(graph.num_node_ids)
    stack = [SOURCE_ID]
    while stack:
        node = stack.pop()
        if node < 0:
            left.append(~node)
        elif not seen[node]:
            seen[node] = True
            stack.append(~node)
            stack += consumers[starts[node] : starts[node + 1]]
    left.reverse()
    return left
