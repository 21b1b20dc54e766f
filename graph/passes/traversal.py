"""Orders in which passes visit the nodes of a graph.

Flows in: a graph. Flows out: node ids. Always holds: the order depends on the ids of nodes and edges alone, so that of
two equal nodes TensorFlow and we keep the same one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns import SOURCE_ID
from ..graph import Graph


def rows(keys: npt.ArrayLike, items: npt.ArrayLike, count: int) -> tuple[list[int], list[int]]:
    """Items by ascending key: those of key k are `items[starts[k]:starts[k + 1]]`; `keys` must be sorted."""
    starts = np.searchsorted(np.asarray(keys), np.arange(count + 1))
    return starts.tolist(), np.asarray(items).tolist()


def reverse_post_order(graph: Graph) -> list[int]:
    """All nodes that the source leads to, each before what it leads to (back edges of loops aside).

    Depth first; of the consumers of a node, edges in id order, the last one is gone into first.
    """
    edges = graph.edge_arrays()
    by_src = np.argsort(edges.src, kind="stable")
    starts, consumers = rows(edges.src[by_src], edges.dst[by_src], graph.num_node_ids)
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
