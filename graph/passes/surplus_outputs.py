"""Takes from calls the outputs that they declare, their function does not give, and nobody reads.

TensorFlow gives the outputs that exist and misses another only where a node or a fetch reads it. A call of which one
such output is read stays as it is, and fails when it runs.
"""

from __future__ import annotations

from ...errors import PartitaError
from ..attrs import encode
from ..functions.body import instantiate_call
from ..graph import Graph
from ..library.calls import function_attr
from ..node import Node
from ..ops.properties import NodeProperties
from ..ops.record import Calls

_OUTPUTS = "Tout"


def drop_surplus_outputs(graph: Graph) -> None:
    """Takes surplus outputs from the calls of a pruned graph, in place: all edges are readers that will run."""
    given: dict[NodeProperties, int] = {}
    for kind in graph.distinct_properties()[0]:
        if kind.op_def.record.calls in (Calls.CALL, Calls.REMOTE):
            count = _num_results(graph, kind)
            if count is not None and count < len(kind.output_types):
                given[kind] = count
    for node in [node for node in graph.op_nodes() if node.properties in given] if given else ():
        count = given[node.properties]
        if all(edge.is_control or edge.src_output < count for edge in node.out_edges()):
            _replace(
                graph, node, node.properties.with_attr(_OUTPUTS, encode(list(node.output_types[:count]), "list(type)"))
            )


def _num_results(graph: Graph, call: NodeProperties) -> int | None:
    """The number of results of the function that a node calls; None if that cannot be told, so that the call fails."""
    try:
        function = function_attr(call, "f")
        signature = graph.functions.signature(function.name)
        if signature is None or len(signature.output_args) == len(call.output_types):
            return None
        return len(instantiate_call(graph.functions, function).result_types)
    except PartitaError:
        return None


def _replace(graph: Graph, node: Node, properties: NodeProperties) -> None:
    """Replaces a node by one of the same name, device and edges."""
    name, requested, assigned = node.name, node.requested_device, node.assigned_device
    sources = [(edge.src, edge.src_output, edge.dst_input, edge.is_control) for edge in node.in_edges()]
    readers = [(edge.src_output, edge.dst, edge.dst_input, edge.is_control) for edge in node.out_edges()]
    graph.remove_node(node)
    narrow = graph.add_node_with(name, properties, device=requested)
    narrow.assigned_device = assigned
    for source, output, port, is_control in sources:
        if is_control:
            graph.add_control_edge(source, narrow)
        else:
            graph.add_edge(source, output, narrow, port)
    for output, reader, port, is_control in readers:
        if is_control:
            graph.add_control_edge(narrow, reader)
        else:
            graph.add_edge(narrow, output, reader, port)
