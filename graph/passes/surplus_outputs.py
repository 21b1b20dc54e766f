"""Removes outputs that a call declares but its function does not return, where nothing reads them.

    c = PartitionedCall(f), 3 outputs, where f returns 2        2 outputs, unless something reads c:2

In TensorFlow such a call fails only if a node or a fetch reads the missing output. So a call whose missing output is
read stays as it is, and fails when it runs.
"""

from __future__ import annotations

from ...errors import PartitaError
from ..attrs import encode
from ..functions.body import instantiate_call
from ..graph import Graph
from ..library.calls import function_attr
from ..ops.properties import NodeProperties
from ..ops.record import Calls

_OUTPUTS = "Tout"


def drop_surplus_outputs(graph: Graph) -> None:
    """Removes them from the calls of a pruned graph, in place; in a pruned graph every node that reads will run."""
    given: dict[NodeProperties, int] = {}
    for kind in graph.distinct_properties()[0]:
        if kind.op_def.record.calls in (Calls.CALL, Calls.REMOTE):
            count = _num_results(graph, kind)
            if count is not None and count < len(kind.output_types):
                given[kind] = count
    for node in [node for node in graph.op_nodes() if node.properties in given] if given else ():
        count = given[node.properties]
        if all(edge.is_control or edge.src_output < count for edge in node.out_edges()):
            kept = encode(list(node.output_types[:count]), "list(type)")
            graph.set_node_properties(node.id, node.properties.with_attr(_OUTPUTS, kept))


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
