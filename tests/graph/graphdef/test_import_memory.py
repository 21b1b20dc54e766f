"""The memory of an imported graph: bytes per node, and no reference cycles."""

from __future__ import annotations

import tracemalloc

import numpy as np

from partita.graph import Graph, GraphDef, import_graph_def
from partita.graph.attrs import encode
from partita.graph.protos import NodeDef
from tests.large_graphs import many_nodes
from tests.runs import counted_garbage

NODES = 20_000
MOST_PER_NODE = 160  # bytes: a name, 80, and the columns of one node and two edges, 52, with room to grow
MOST_WHILE_READING = 500


def test_a_node_costs_its_name_and_some_integers() -> None:
    """Op, attrs, types, devices and input strings are shared or freed; while reading, only names are kept."""
    data = many_nodes(NODES, devices=8)
    import_graph_def(data, Graph())  # fills what all graphs share
    tracemalloc.start()
    try:
        graph = Graph()
        import_graph_def(data, graph)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert graph.num_nodes == NODES + 3
    assert kept / NODES < MOST_PER_NODE
    assert peak / NODES < MOST_WHILE_READING


def test_large_tensors_are_copied_twice_at_most() -> None:
    """Beside the bytes of the file there are those of the attrs, and of the values that were looked at."""
    value = encode(np.zeros(1 << 18, np.float32), "tensor")
    constants = [NodeDef(name=f"c{i}", op="Const", attr={"dtype": encode("float32", "type")}) for i in range(8)]
    for node in constants:
        node.attr["value"].CopyFrom(value)
    data = GraphDef(node=constants).SerializeToString(deterministic=True)
    tracemalloc.start()
    try:
        import_graph_def(data, Graph())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.2 * len(data)


def test_importing_leaves_nothing_to_the_garbage_collector() -> None:
    """No reference cycle keeps the message, which is larger than the graph, until some later collection."""
    data = many_nodes(100)
    import_graph_def(data, Graph())  # modules that are loaded now leave cycles of their own
    with counted_garbage() as left:
        import_graph_def(data, Graph())
    assert left == [0]
