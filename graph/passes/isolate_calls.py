"""Inserts Identity nodes around calls whose results include resources, so that each result can have its own device.

Each data input and each used output of such a call gets an Identity without a device, named as in TensorFlow.

    v -> c (gives a handle) -> ReadVariableOp        v -> v_c -> c -> c_ReadVariableOp -> ReadVariableOp

Without them the consumers of a resource would have to be on the call's device, although the body may have the variable
elsewhere. With them, `v_c` and `c_ReadVariableOp` are on the devices that the body's arguments and results have.
"""

from __future__ import annotations

from ..dtypes import DataType, base_type, is_ref
from ..graph import Graph
from ..library.calls import called_function, is_partitioned_call
from ..node import Edge, Node


def calls_giving_resources(graph: Graph) -> list[Node]:
    """Calls of known functions over several devices with a resource or a reference among their outputs."""
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
    """Inserts the Identity nodes; running it again adds none."""
    for call in calls_giving_resources(graph):
        for edge in sorted((e for e in call.in_edges() if not e.is_control), key=lambda e: e.dst_input):
            if not _is_between(edge.src, call):
                _split(graph, edge, f"{edge.src.name}_{call.name}")
        for edge in call.out_edges():
            if not edge.is_control and not (edge.dst.op == "Identity" and edge.dst.name.startswith(f"{call.name}_")):
                _split(graph, edge, f"{call.name}_{edge.dst.name}")


def _is_between(node: Node, call: Node) -> bool:
    """Whether a node is an Identity that was inserted before the call."""
    return node.op == "Identity" and node.name.startswith(f"{node.input_edge(0).src.name}_{call.name}")


def _split(graph: Graph, edge: Edge, name: str) -> None:
    """Inserts an Identity into an edge."""
    src, output, dst, port = edge.src, edge.src_output, edge.dst, edge.dst_input
    identity = graph.add_node(_free(graph, name), "Identity", {"T": base_type(src.output_types[output])})
    graph.add_edge(src, output, identity, 0)
    graph.update_edge(identity, 0, dst, port)


def _free(graph: Graph, name: str) -> str:
    """The name, with a number appended if it is in use."""
    candidate, number = name, 0
    while graph.find_node(candidate) is not None:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
