"""Colocation of control flow: before a graph is cut, control-flow nodes move to the device of their data.

These nodes compute nothing, so wherever the placer put them, no tensor should cross to another device on their account:

    Switch, Exit                               move to the producer of their data input
    Enter (not of a reference), NextIteration  move to their first data consumer

Nodes are visited depth first from the source: a chain of Switch nodes ends up on the device of the tensor that the
first one reads.
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
    """Nodes reachable from the source, each when it is first reached; of several consumers the last edge's first."""
    # Not `ready_order`: a node moves to where those visited before it have moved, so this has to be TensorFlow's order.
    seen = bytearray(graph.num_node_ids)
    stack = [SOURCE_ID]
    while stack:
        node_id = stack.pop()
        if seen[node_id]:
            continue
        seen[node_id] = 1
        yield Node(graph, node_id)
        consumers = (graph.edge_ends(edge)[2] for edge in graph.out_edge_ids(node_id))
        stack.extend(consumer for consumer in consumers if not seen[consumer])


def _device_of_data(node: Node) -> str | None:
    """The device that a control-flow node moves to; None for nodes that stay."""
    if node.node_class in _WITH_PRODUCER:
        return next((edge.src.assigned_device for edge in node.in_edges() if edge.dst_input == 0), None)
    if node.node_class in _WITH_CONSUMER and not (node.node_class is NodeClass.ENTER and is_ref(node.output_types[0])):
        return next((edge.dst.assigned_device for edge in node.out_edges() if not edge.is_control), None)
    return None


def colocate_control_flow(graph: Graph) -> Graph:
    """A clone of `graph`, with the same ids, in which control-flow nodes are moved; `graph` itself if it has none."""
    if graph.node_classes().isdisjoint(_WITH_PRODUCER | _WITH_CONSUMER):
        return graph
    moved = graph.clone()
    for node in _depth_first(moved):
        device = _device_of_data(node)
        if device is not None:
            node.assigned_device = device
    return moved
