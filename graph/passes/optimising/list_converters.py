"""Replaces `_ListToArray` and `_ArrayToList`, which only regroup tensors, by one Identity per tensor.

Consumers of output i read input i. Control edges are kept by NoOp nodes before and after the Identity nodes. A
converter whose ports do not match one to one stays.
"""

from __future__ import annotations

from ...graph import Graph
from ...node import Node
from ...ops.properties import NodeProperties

_PREFIX = "Func"  # first part of generated names, as in inlined functions


def remove_list_converters(graph: Graph) -> Graph:
    """The graph without list converters, or the same object if there are none."""
    kinds = graph.distinct_properties()[0]
    if not any(_is_one_to_one(kind) for kind in kinds):
        return graph
    result = graph.clone()
    for node in [node for node in result.op_nodes() if _is_one_to_one(node.properties)]:
        _replace(result, node)
    return result


def _is_one_to_one(kind: NodeProperties) -> bool:
    return kind.op_def.record.converts_lists and kind.input_types == kind.output_types


def _replace(graph: Graph, node: Node) -> None:
    """Replaces the node by one Identity per tensor, and NoOp nodes for its control edges if it has any."""
    identities = [
        graph.add_node(graph.new_name(_PREFIX), "Identity", {"T": dtype}, device=node.requested_device)
        for dtype in node.output_types
    ]
    for identity in identities:
        identity.assigned_device = node.assigned_device
    for edge in node.input_edges():
        graph.add_edge(edge.src, edge.src_output, identities[edge.dst_input], 0)
    before = [edge.src for edge in node.in_edges() if edge.is_control and edge.src.is_op]
    after = [edge.dst for edge in node.out_edges() if edge.is_control and edge.dst.is_op]
    _order(graph, node, before, identities or after)
    _order(graph, node, identities, after)
    for edge in node.out_edges():
        if not edge.is_control:
            graph.add_edge(identities[edge.src_output], 0, edge.dst, edge.dst_input)
    graph.remove_node(node)


def _order(graph: Graph, node: Node, first: list[Node], then: list[Node]) -> None:
    """Makes all of `then` wait for all of `first`, through a NoOp on the device of `node`."""
    if not first or not then:
        return
    between = graph.add_node(graph.new_name(_PREFIX), "NoOp", device=node.requested_device)
    between.assigned_device = node.assigned_device
    for source in first:
        graph.add_control_edge(source, between)
    for consumer in then:
        graph.add_control_edge(between, consumer)
