"""The bodies of functions on devices: which graph a call from a device runs, on which device each of its nodes.

Nodes of a body go to devices by TensorFlow's two rules:
- `PartitionedCall` and `StatefulPartitionedCall` run over several devices. Arguments and results are on the caller's
  device, resources where their handles say, which may be known only at run time. The placer places the rest and
  prefers the caller's device.
- All other calls (a function used as an op, If, Case and While that are not lowered, maps, remote calls, gradients)
  run as a whole on one device, whatever devices their nodes request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import PartitaError
from ...graph.columns import SINK_ID
from ...graph.dtypes import DataType
from ...graph.functions.body import FunctionBody, instantiate_call
from .stages import Pipeline, Pruned

if TYPE_CHECKING:
    from ...graph import NameAttrList
    from ...graph.graph import Graph
    from ...graph.library.function_library import FunctionLibrary

ResourceDevices = tuple[str, ...]
"""full names of the devices of the resource arguments of a call, in their order"""


def body_of(library: FunctionLibrary, function: NameAttrList, *, gradient: bool) -> FunctionBody:
    """The body of a function, or of its gradient function. Raises the errors of instantiation and of gradients."""
    if gradient:
        from ...graph.gradients import gradient_function  # few programs differentiate calls: the others do not load it

        return gradient_function(library, function)
    return instantiate_call(library, function)


def placed_body(
    pipeline: Pipeline, body: FunctionBody, device: str, resource_devices: ResourceDevices | None
) -> Pruned:
    """The graph that calls from `device` run, with a device for every node; `cut` gives its partitions.

    With `resource_devices` the nodes are placed on several devices, with None all of them are on `device`. Raises the
    errors of lowering and of placing, with the function named.
    """
    try:
        pruned = pipeline.prune_body(body)
        _fix_devices(pruned.graph, body, device, resource_devices)
        return pruned.place(default_device=device)
    except PartitaError as error:
        raise error.inside(body.name) from error.__cause__


def _fix_devices(graph: Graph, body: FunctionBody, device: str, resource_devices: ResourceDevices | None) -> None:
    """Assigns the arguments and results of a pruned body; requests `device` for all nodes if it has no others."""
    if resource_devices is None:
        requested = graph.requested_device_indices()
        requested[SINK_ID + 1 :] = graph.intern_device(device)
        graph.request_devices(requested)
        return
    assigned, device_of_next_resource = graph.assigned_device_indices(), iter(resource_devices)
    for node in body.arguments:
        argument_device = next(device_of_next_resource, device) if node.output_types[0] is DataType.RESOURCE else device
        assigned[node.id] = graph.intern_device(argument_device)
    for node in body.results:
        if node.input_types[0] is not DataType.RESOURCE:
            assigned[node.id] = graph.intern_device(device)
    graph.assign_devices(assigned)
