"""A graph as a GraphDef that says the shapes of tensors beside the nodes that compute them.

Flows in: a graph. Flows out: its GraphDef with the attr `_output_shapes` on every node that has outputs, a shape each,
as far as they follow from the graph; nodes of functions stay as they are. Always holds: the graph is not changed.
"""

from __future__ import annotations

from ..graph import Graph
from ..protos import GraphDef
from ..tensor import shape_to_proto
from .infer import infer_shapes
from .written_shapes import OUTPUT_SHAPES


def to_annotated_graph_def(graph: Graph) -> GraphDef:
    """See the module. Raises InvalidArgumentError, naming the node, where shapes contradict an op."""
    shapes = infer_shapes(graph)
    made = graph.to_graph_def()
    for node in made.node:
        if shapes[node.name]:
            node.attr[OUTPUT_SHAPES].list.shape.extend(map(shape_to_proto, shapes[node.name]))
    return made
