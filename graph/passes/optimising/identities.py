"""Removes Identity nodes whose consumers can read the Identity's input instead.

An Identity stays if it has control inputs, if it reads a reference (it takes a snapshot then), a receive or a Switch
(dead outputs of a Switch are handled by it), or if it has no consumers.
"""

from __future__ import annotations

from ...dtypes import is_ref
from ...graph import Graph
from ...node import Node
from ...ops.record import NodeClass

_STAYS_AFTER = frozenset({NodeClass.RECV, NodeClass.HOST_RECV, NodeClass.SWITCH})


def remove_identity_nodes(graph: Graph) -> Graph:
    """The graph without removable Identity nodes, or the same object if there are none."""
    if not any(_is_needless(node) for node in graph.op_nodes()):
        return graph
    result = graph.clone()
    for node in [node for node in result.op_nodes() if node.node_class is NodeClass.IDENTITY]:
        if _is_needless(node):  # asked again: its source may have been an Identity that was removed
            _bypass(result, node)
    result.fix_source_and_sink_edges()
    return result


def _is_needless(node: Node) -> bool:
    if node.node_class is not NodeClass.IDENTITY:
        return False
    inputs = node.in_edges()
    if len(inputs) != 1 or inputs[0].is_control or not node.out_edges():
        return False
    source = inputs[0].src
    return source.node_class not in _STAYS_AFTER and not is_ref(source.output_types[inputs[0].src_output])


def _bypass(graph: Graph, node: Node) -> None:
    """Connects the consumers of an Identity to its input, and removes it."""
    (read,) = node.in_edges()
    for edge in node.out_edges():
        if edge.is_control and edge.dst.is_op:
            graph.add_control_edge(read.src, edge.dst)
        elif not edge.is_control:
            graph.add_edge(read.src, read.src_output, edge.dst, edge.dst_input)
    graph.remove_node(node)
