"""Identities around the calls whose results are resources, so that the placer can say where each result lives.

Flows in: a graph, not yet placed. Flows out: the same graph, changed. Always holds: each data input and each read
output of such a call has an Identity of its own, without a device; names are TensorFlow's; calls that give no resource
stay as they are.

    v -> c (gives a handle) -> ReadVariableOp        v -> v_c -> c -> c_ReadVariableOp -> ReadVariableOp

Without them whatever reads a result would have to be where the call is, although the body may have the variable
elsewhere. With them `v_c` and `c_ReadVariableOp` are where the body has what goes in and comes out of it.
"""

from __future__ import annotations

from ..dtypes import DataType, base_type, is_ref
from ..graph import Graph
from ..library.calls import called_function, is_partitioned_call
from ..node import Edge, Node


def calls_giving_resources(graph: Graph) -> list[Node]:
    """The calls of known functions over several devices that have a resource or a reference among their outputs."""
    kinds = {kind for kind in graph.shared_properties() if kind is not None and is_partitioned_call(kind)}
    giving = {
        kind
        for kind in kinds
        if any(dtype is DataType.RESOURCE or is_ref(dtype) for dtype in kind.output_types)
        and (function := called_function(kind, graph.functions)) is not None
        and function.name in graph.functions
    }
    return [node for node in graph.op_nodes() if node.properties in giving] if giving else []


def isolate_calls(graph: Graph) -> None:
    """Puts the identities into `graph`; those that are there already stay the only ones."""
    for call in calls_giving_resources(graph):
        for edge in sorted((e for e in call.in_edges() if not e.is_control), key=lambda e: e.dst_input):
            if not _is_between(edge.src, call):
                _split(graph, edge, f"{edge.src.name}_{call.name}")
        for edge in call.out_edges():
            if not edge.is_control and not (edge.dst.op == "Identity" and edge.dst.name.startswith(f"{call.name}_")):
                _split(graph, edge, f"{call.name}_{edge.dst.name}")


def _is_between(node: Node, call: Node) -> bool:
    """Whether a node has been put before the call."""
    return node.op == "Identity" and node.name.startswith(f"{node.input_edge(0).src.name}_{call.name}")


def _split(graph: Graph, edge: Edge, name: str) -> None:
    """An Identity in the middle of an edge."""
    src, output, dst, port = edge.src, edge.src_output, edge.dst, edge.dst_input
    identity = graph.add_node(_free(graph, name), "Identity", {"T": base_type(src.output_types[output])})
    graph.add_edge(src, output, identity, 0)
    graph.update_edge(identity, 0, dst, port)


def _free(graph: Graph, name: str) -> str:
    """The name, with the first number that makes it a new one if it is taken."""
    found, number = name, 0
    while graph.find_node(found) is not None:
        found, number = f"{name}_{number}", number + 1
    return found
