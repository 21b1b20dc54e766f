"""Devices of nodes that belong to others: users of variables, and nodes that are colocated with others.

A pass that moves nodes requests devices for those that it knows. Others have to follow, or nothing could be placed:

    w = VarHandleOp() @GPU:1                                  by a pass
    AssignVariableOp(w, restored) @CPU:0                      becomes @GPU:1
    v/initial = ReadVariableOp(w) {_class=["loc:@v"]}         becomes @GPU:1, beside v no more, which may be elsewhere

Inlined calls leave an Identity between a variable and its users, which `direct_handles` bypasses:

    w = VarHandleOp()    Func/step/input/_3 = Identity(w)    ReadVariableOp(Func/step/input/_3)    becomes (w)
"""

from __future__ import annotations

from dataclasses import replace

from ..device_name import find_full_name
from ..dtypes import DataType
from ..graph import Graph
from ..node import Node
from .value_flow import ValueFlow, is_handle

_CLASS = "_class"


def follow_variables(graph: Graph) -> None:
    """Requests for nodes that get the handle of a variable the device that the variable requests; changes `graph`."""
    flow = ValueFlow(graph)
    for node in list(graph.op_nodes()):
        variable = flow.variable(node.id) if any(map(is_handle, node.input_types)) else None
        device = "" if variable is None else graph.requested_device(variable)
        if device and node.requested_device != device:
            node.requested_device = device
            if _CLASS in node.attrs:
                node.clear_attr(_CLASS)


def follow_groups(graph: Graph) -> None:
    """Requests for nodes without a device that of the first node with one that they are colocated with.

    Nodes that pass a value on leave the group then: a pass may send the value to several devices.
    """
    for node in graph.op_nodes():
        leader, seen = node, {node.id}
        while not leader.requested_device and (groups := leader.properties.colocated_with):
            other = graph.find_node(groups[0])
            if other is None or other.id in seen:
                break
            seen.add(other.id)
            leader = other
        if leader.requested_device and not node.requested_device:
            node.requested_device = leader.requested_device
    for node in graph.op_nodes():
        if _CLASS in node.attrs and _passes_value(node):
            node.clear_attr(_CLASS)


def _passes_value(node: Node) -> bool:
    return node.op_def.record.passes_on and not is_handle(node.input_types[0])


def direct_handles(graph: Graph) -> None:
    """Lets the users of resources read the nodes that make the handles; changes `graph`.

    Nodes that passed a handle on and that nothing needs any more are removed.
    """
    flow = ValueFlow(graph)
    nodes = list(graph.op_nodes())
    for node in nodes:
        for port, dtype in enumerate(node.input_types):
            if dtype is DataType.RESOURCE:
                source = flow.sources[node.id][port]
                while graph.node_properties(source[0]).op_def.record.passes_on:
                    source = flow.sources[source[0]][0]
                if source != flow.sources[node.id][port]:
                    graph.update_edge(graph.node(source[0]), source[1], node, port)
    for node in nodes:
        passes_on = node.op_def.record.passes_on and node.output_types[0] is DataType.RESOURCE
        if passes_on and not any(edge.dst.is_op for edge in node.out_edges()):
            graph.remove_node(node)


def host_of(device: str) -> str:
    """The first CPU of the task of a device, where feeds arrive."""
    parsed = find_full_name(device)
    return "" if parsed is None else str(replace(parsed, type="CPU", id=0))
