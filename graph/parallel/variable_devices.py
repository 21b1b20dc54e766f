"""What uses a variable is where the variable is: savers, restored checkpoints and initial values, after a pass moved it.

    w = VarHandleOp() @GPU:1                                  by a pass
    AssignVariableOp(w, restored) @CPU:0                      becomes @GPU:1
    v/initial = ReadVariableOp(w) {_class=["loc:@v"]}         becomes @GPU:1, beside v no more, which may be elsewhere
"""

from __future__ import annotations

from ..graph import Graph
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
