"""A graph as a GraphDef with its inferred shapes, in an attr `_output_shapes` on every node that has outputs.

Nodes of functions get none.
"""

from __future__ import annotations

from ..graph import Graph
from ..protos import GraphDef
from ..tensor import shape_to_proto
from .infer import infer_shapes
from .written_shapes import OUTPUT_SHAPES


def to_annotated_graph_def(graph: Graph) -> GraphDef:
    """The GraphDef with shapes. Raises InvalidArgumentError, naming the node, where shapes contradict an op."""
    shapes = infer_shapes(graph)
    graph_def = graph.to_graph_def()
    for node in graph_def.node:
        if shapes[node.name]:
            node.attr[OUTPUT_SHAPES].list.shape.extend(map(shape_to_proto, shapes[node.name]))
    return graph_def
