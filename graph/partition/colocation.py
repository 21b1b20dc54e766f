"""Moving control-flow nodes to where their data is, before a graph is cut.

Flows in: a placed graph. Flows out: a graph with the same ids in which Switch and Exit sit with their data input,
Enter (of a value) and NextIteration with their first data consumer, so that only data that has to move does. Always
holds: nodes are visited depth first from the source, so a chain of Switch nodes ends up where its first one reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..columns import SOURCE_ID
from ..dtypes import is_ref
from ..graph import Graph
from ..node import Node
from ..ops.record import NodeClass

_WITH_PRODUCER = frozenset({NodeClass.SWITCH, NodeClass.EXIT})
_WITH_CONSUMER = frozenset({NodeClass.ENTER, NodeClass.NEXT_ITERATION})


def _depth_first(graph: Graph) -> Iterator[Node]:
    """Nodes reachable from the source before their descendants; of several children the last one first."""
    seen = bytearray(graph.num_node_ids)
    stack = [SOURCE_ID]
    while stack:
        node_id = stack.pop()
        if seen[node_id]:
            continue
        seen[node_id] = 1
        yield Node(graph, node_id)
        children = (graph.edge_ends(edge)[2] for edge in graph.out_edge_ids(node_id))
        stack.extend(child for child in children if not seen[child])


def _better_device(node: Node) -> str | None:
    """The device of the node's data input or first data consumer, whichever its class asks for."""
    if node.node_class in _WITH_PRODUCER:
        return next((edge.src.assigned_device for edge in node.in_edges() if edge.dst_input == 0), None)
    if node.node_class in _WITH_CONSUMER and not (node.node_class is NodeClass.ENTER and is_ref(node.output_types[0])):
        return next((edge.dst.assigned_device for edge in node.out_edges() if not edge.is_control), None)
    return None


def colocate_control_flow(graph: Graph) -> Graph:
    """`graph` itself when it has no control flow, else a clone of it with such nodes moved."""
    if not (_WITH_PRODUCER | _WITH_CONSUMER) & {
        kind.op_def.record.node_class for kind in graph.distinct_properties()[0]
    }:
        return graph
    moved = graph.clone()
    for node in _depth_first(moved):
        device = _better_device(node)
        if device is not None:
            node.assigned_device = device
    return moved
