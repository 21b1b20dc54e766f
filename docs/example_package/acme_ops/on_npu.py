"""A pass: vectors are smoothed on an accelerator, wherever the graph's author left that open."""

from __future__ import annotations

from partita.graph import Graph, GraphContext, GraphPass


def on_npu(graph: Graph, context: GraphContext) -> Graph:
    """Requests the first NPU of the cluster for every Smooth without a request."""
    npus = [device for device in context.devices if "device:NPU:" in device]
    smooth = [node.id for node in graph.op_nodes() if node.op == "Smooth" and not node.requested_device]
    if not npus or not smooth:
        return graph
    result = graph.clone()
    for node_id in smooth:
        result.node(node_id).requested_device = npus[0]
    return result


ON_NPU = GraphPass("on_npu", "Smooth nodes run on an NPU", on_npu)
