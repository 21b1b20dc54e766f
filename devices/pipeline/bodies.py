"""The bodies of functions on devices: which graph a call from a device runs, on which device each of its nodes.

Nodes of a body go to devices by TensorFlow's two rules:
- `PartitionedCall` and `StatefulPartitionedCall` run over several devices. Arguments and results are on the caller's
  device, resources where their handles say, which may be known only at run time. The placer places the rest and
  prefers the caller's device. A function that is instantiated for several devices may have its arguments and results on
  any of them.
- All other calls (a function used as an op, If, Case and While that are not lowered, maps, remote calls, gradients)
  run as a whole on one device, whatever devices their nodes request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    from ..cluster import Cluster


@dataclass(frozen=True, slots=True)
class BodyDevices:
    """The devices of a body's arguments and results, in their order; where one is "", the placer chooses it."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]


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
    ends = None if resource_devices is None else _ends_of_call(body, device, resource_devices)
    return placed_between(pipeline, body, device, ends)


def placed_between(pipeline: Pipeline, body: FunctionBody, device: str, ends: BodyDevices | None) -> Pruned:
    """As `placed_body`, with given devices of arguments and results; without any (None) all nodes are on `device`."""
    try:
        pruned = pipeline.prune_body(body)
        _fix_devices(pruned.graph, body, device, ends)
        return pruned.place(default_device=device)
    except PartitaError as error:
        raise error.inside(body.name) from error.__cause__


def _ends_of_call(body: FunctionBody, device: str, resource_devices: ResourceDevices) -> BodyDevices:
    """Arguments and results of a call are on the caller's device, resources where their handles say."""
    device_of_next_resource = iter(resource_devices)
    return BodyDevices(
        tuple(
            next(device_of_next_resource, device) if node.output_types[0] is DataType.RESOURCE else device
            for node in body.arguments
        ),
        tuple("" if node.input_types[0] is DataType.RESOURCE else device for node in body.results),
    )


def ends_by_sources(cluster: Cluster, body: FunctionBody, arguments: Sequence[str]) -> BodyDevices:
    """The ends of a function whose arguments are on these devices, and whose results stay where they are made.

    A result that is an argument is on its device, one whose node requests one device is there; the placer chooses
    others.
    """
    devices = {node.id: device for node, device in zip(body.arguments, arguments, strict=True)}
    results = []
    for result in body.results:
        source = result.input_edges()[0].src
        requested = cluster.find(source.requested_device).name if source.requested_device in cluster else ""
        results.append(devices.get(source.id, requested))
    return BodyDevices(tuple(arguments), tuple(results))


def _fix_devices(graph: Graph, body: FunctionBody, device: str, ends: BodyDevices | None) -> None:
    """Assigns the arguments and results of a pruned body; requests `device` for all nodes if it has no others."""
    if ends is None:
        requested = graph.requested_device_indices()
        requested[SINK_ID + 1 :] = graph.intern_device(device)
        graph.request_devices(requested)
        return
    assigned = graph.assigned_device_indices()
    for nodes, devices in ((body.arguments, ends.arguments), (body.results, ends.results)):
        for node, name in zip(nodes, devices, strict=True):
            if name:
                assigned[node.id] = graph.intern_device(name)
    graph.assign_devices(assigned)
