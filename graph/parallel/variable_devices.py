"""Handles of variables: passes find them at their users, and users follow a variable that a pass moved.

Inlined calls leave an Identity between a variable and its users, which `direct_handles` bypasses:

    w = VarHandleOp()    Func/step/input/_3 = Identity(w)    ReadVariableOp(Func/step/input/_3)    becomes (w)

What uses a variable is where it is (`follow_variables`): savers, restored checkpoints and initial values too.

    w = VarHandleOp() @GPU:1                                  by a pass
    AssignVariableOp(w, restored) @CPU:0                      becomes @GPU:1
    v/initial = ReadVariableOp(w) {_class=["loc:@v"]}         becomes @GPU:1, beside v no more, which may be elsewhere
"""

from __future__ import annotations

from ..dtypes import DataType
from ..graph import Graph
from .value_flow import ValueFlow, is_handle

_CLASS = "_class"


def direct_handles(graph: Graph) -> None:
    """Lets the users of variables read the nodes that make the handles; changes `graph`.

    Nodes that passed a handle on and that nothing needs any more are removed.
    """
    flow = ValueFlow(graph)
    passing = [
        node
        for node in graph.op_nodes()
        if node.op_def.record.passes_on and node.output_types[0] is DataType.RESOURCE
    ]
    for node in list(graph.op_nodes()):
        for port, dtype in enumerate(node.input_types):
            if dtype is DataType.RESOURCE:
                source, output = flow.sources[node.id][port]
                while graph.node_properties(source).op_def.record.passes_on:
                    source, output = flow.sources[source][0]
                if (source, output) != flow.sources[node.id][port]:
                    graph.update_edge(graph.node(source), output, node, port)
    for node in reversed(passing):
        if not any(edge.dst.is_op for edge in node.out_edges()):
            graph.remove_node(node)


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
