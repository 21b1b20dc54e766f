"""Error texts of the placer.

The first line is TensorFlow 2.21's; the rest may differ from TensorFlow's.
"""

from __future__ import annotations

from ...errors import InvalidArgumentError, Reason
from ...graph.device_name import find_full_name
from ...graph.dtypes import dtype_name
from ...graph.graph import Graph
from ...graph.ops.kernel_facts import registered_kernels
from ...graph.ops.summaries import node_for_error, summarize_attr, summarize_node
from .candidates import ANY, Constraint, DeviceSet
from .colocation import ColocationGroup, colocation_node, describe_group
from .node_kinds import supported_types


def refusal(
    graph: Graph, node_id: int, constraint: Constraint, group: ColocationGroup | None, devices: DeviceSet
) -> InvalidArgumentError:
    """The error of a node (and its group, if it is in one) that no device fits.

    Where the requested device does not exist, that is its `device`.
    """
    name, text = graph.node_name(node_id), graph.requested_device(node_id)
    why = f"Cannot assign a device for operation {name}: {_why(graph, node_id, constraint, group, devices)}"
    if text and constraint.requested == find_full_name(text) and not devices.matching(constraint.requested):
        return InvalidArgumentError(why, node=name, device=text).because(Reason.NO_DEVICE)
    return InvalidArgumentError(why, node=name)


def _why(graph: Graph, node_id: int, constraint: Constraint, group: ColocationGroup | None, devices: DeviceSet) -> str:
    text = graph.requested_device(node_id)
    requested = find_full_name(text) or ANY
    members = describe_group(
        graph,
        group or ColocationGroup([node_id], constraint),
        lambda i: supported_types(graph.node_properties(i), devices.types),
    )
    listed = ", ".join(sorted(devices.names))
    if constraint.requested == ANY:
        return _unsupported(graph, node_id) + members
    if requested != constraint.requested:
        return (
            f"Could not satisfy explicit device specification '{text}' because the node "
            f"{colocation_node(graph.node_name(node_id))} was colocated with a group of nodes that required "
            f"incompatible device '{constraint.requested}'. All available devices [{listed}]. {members}"
        )
    if not devices.matching(requested):
        return (
            f"{node_for_error(graph.node_name(node_id))} was explicitly assigned to {text} but available devices are "
            f"[ {listed} ]. Make sure the device specification refers to a valid device."
        )
    kind = f"{requested.type} " if requested.type is not None else "matching "
    return (
        f"Could not satisfy explicit device specification '{text}' because no supported kernel for {kind}devices is "
        f"available.{members}\nOp: {graph.node_properties(node_id).op}\nNode attrs: {_attrs(graph, node_id)}\n"
        f"Registered kernels:\n{_kernels(graph, node_id)}\n"
    )


def _unsupported(graph: Graph, node_id: int) -> str:
    properties = graph.node_properties(node_id)
    types = ", ".join(map(dtype_name, properties.input_types))
    return (
        "Node had no OpKernel registered to support this operation: "
        f"Operation was {properties.op} and inputs were [{types}].\n"
    )


def no_kernel(graph: Graph, node_id: int, devices: DeviceSet) -> str:
    """The text for a node for which TensorFlow has a kernel on none of the device types."""
    return (
        f"No OpKernel was registered to support Op '{graph.node_properties(node_id).op}' used by "
        f"{node_for_error(graph.node_name(node_id))} with these attrs: [{_attrs(graph, node_id)}]\n"
        f"Registered devices: [{', '.join(devices.types)}]\nRegistered kernels:\n{_kernels(graph, node_id)}"
    )


def _attrs(graph: Graph, node_id: int) -> str:
    attrs = graph.node_properties(node_id).attrs
    return ", ".join(f"{name}={summarize_attr(attrs.message(name))}" for name in attrs)


def _kernels(graph: Graph, node_id: int) -> str:
    texts = registered_kernels(graph.node_properties(node_id).op)
    return "\n".join(f"  {text}" for text in texts or ["<no registered kernels>"])


def debug_string(graph: Graph, node_id: int) -> str:
    """Everything about a node in one line, as TensorFlow prints its nodes."""
    node = graph.node(node_id)
    attrs = {name: node.attrs.message(name) for name in node.attrs}
    text = summarize_node(node.name, node.op, node.requested_inputs, attrs, node.requested_device)
    devices = f"requested: '{node.requested_device}', assigned: '{node.assigned_device}'"
    return f"{{name:'{node.name}' id:{node_id} op device:{{{devices}}} def:{{{text}}}}}"
