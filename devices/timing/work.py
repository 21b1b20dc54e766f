"""The work of a step for the simulated hardware: cost, device and dependencies of every node, without times or order.

Every node is free, a piece of compute on one stream, a receive whose transfer takes a route, or dead. If the predicate
of a Switch is known before the run, nodes on its dead side cost nothing; otherwise both sides are counted. A Merge
waits for its control inputs and for one data input that is not dead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod

import numpy as np

from ...graph.analysis.joined import JoinedGraph
from ...graph.dtypes import item_size
from ...graph.ops.record import TRANSFERS, NodeClass
from ...graph.shape_inference.infer import InferredShapes
from ...graph.shape_inference.unknown_sizes import check_sizes, counted_size
from ..cluster import Cluster
from ..kernels.op_cost import Dims
from ..topology import Link, Route
from .cost_source import CostSource, OpCost
from .unmodelled import check_modelled

_MANY_WAY = "_SwitchN"
_FREE = OpCost(0, 0, 0, "free")


class Duty(IntEnum):
    """What the simulated hardware does for a node."""

    FREE = 0  # passes at once
    COMPUTE = 1  # occupies the compute stream of its device
    TRANSFER = 2  # a receive: occupies the links of its route
    DEAD = 3  # known not to run in this step


@dataclass(slots=True)
class Work:
    """Columns by joint node number; `devices` are full names that `device[n]` indexes.

    A receive that takes a route has its size in bytes in `sizes`, its links by number in `links_of`, the time for which
    it occupies them in `occupied_ns` and the latency in `latency_ns`.
    Node `n` is released after `waits[n]` events. The end of node m is one event for each entry of `after[m]`; a Merge
    counts all its data inputs as one event, which `into_merges` delivers.
    """

    graph: JoinedGraph
    shapes: list[tuple[Dims, ...]]
    devices: list[str]
    device: list[int]
    duty: list[Duty]
    cost: list[OpCost]
    routes: dict[int, Route]
    sizes: dict[int, int]
    occupied_ns: dict[int, int]
    latency_ns: dict[int, int]
    links: list[Link]
    links_of: dict[int, list[int]]
    waits: list[int]
    after: list[list[int]]
    into_merges: dict[int, list[int]]
    warnings: list[str] = field(default_factory=list)


def plan_work(shapes: InferredShapes, cluster: Cluster, cost_source: CostSource) -> Work:
    """The work of one step.

    Raises InvalidArgumentError for a node on a device that the cluster does not have, and UnimplementedError for one
    that runs and cannot be timed.
    """
    graph = shapes.graph
    known = _known_sizes(shapes.shapes)
    device, devices = _place(graph, cluster)
    dead = _dead_outputs(shapes)
    check_modelled(graph, lambda n: (n, -1) not in dead)
    runs = np.ones(len(graph), np.bool_)
    runs[[n for n, output in dead if output == -1]] = False
    check_sizes(shapes, runs)
    duty = _duties(graph, dead)
    cost = [_FREE] * len(graph)
    specs = [cluster.find(name).spec for name in devices]
    for n in range(len(graph)):
        if duty[n] is Duty.COMPUTE:
            read = tuple([known[src][output] for src, output in graph.inputs_of(n)])
            cost[n] = cost_source.cost(graph.properties[n], read, known[n], specs[device[n]])
            if cost[n].provenance == "free":
                duty[n] = Duty.FREE
    routes, sizes = _transfers(graph, known, cluster, duty)
    occupied_ns = {n: route.occupied_ns(sizes[n]) for n, route in routes.items()}
    latency_ns = {n: route.latency_ns for n, route in routes.items()}
    links = list(dict.fromkeys(link for route in routes.values() for link in route.links))
    number = {link: i for i, link in enumerate(links)}
    links_of = {n: [number[link] for link in route.links] for n, route in routes.items()}
    waits, after, into_merges = _dependencies(graph, dead, duty)
    warnings = shapes.assumptions + _control_flow_warnings(graph, dead) + _cost_warnings(graph, cost)
    return Work(
        *(graph, known, devices, device, duty, cost),
        *(routes, sizes, occupied_ns, latency_ns, links, links_of),
        *(waits, after, into_merges, warnings),
    )


def _known_sizes(shapes: Sequence[tuple[tuple[int | None, ...] | None, ...]]) -> list[tuple[Dims, ...]]:
    """Shapes; those of unknown size, which nobody reads, without elements."""
    interned: dict[tuple[tuple[int | None, ...] | None, ...], tuple[Dims, ...]] = {}
    shapes_of_nodes = []
    for outputs in shapes:
        sizes = interned.get(outputs)
        if sizes is None:
            sizes = tuple(map(counted_size, outputs))
            interned[outputs] = sizes
        shapes_of_nodes.append(sizes)
    return shapes_of_nodes


def _place(graph: JoinedGraph, cluster: Cluster) -> tuple[list[int], list[str]]:
    """Device of every node, by index: its assigned device, or else the device that its partition is named after."""
    numbers: dict[str, int] = {}
    number = [numbers.setdefault(cluster.find(name).name, len(numbers)) for name in graph.devices]
    return [number[device] for device in graph.device_of.tolist()], list(numbers)


def _dead_outputs(shapes: InferredShapes) -> set[tuple[int, int]]:
    """Outputs known to be dead: the untaken side of a Switch with a known predicate, and all nodes that follow from it.

    Output -1 of a node in the set means that the node does not run.
    """
    graph, dead = shapes.graph, set[tuple[int, int]]()
    if NodeClass.SWITCH not in graph.classes:
        return dead
    for n in graph.order().tolist():
        sources, send = graph.inputs_of(n), int(graph.sender[n])
        dead_inputs = [source in dead for source in sources if not graph.is_back_edge(source[0], n)]
        if graph.node_class(n) is NodeClass.MERGE:
            is_dead = bool(dead_inputs) and all(dead_inputs)
        else:
            is_dead = any(dead_inputs) or any((src, -1) in dead for src in graph.controls_of(n))
        is_dead = is_dead or (send, -1) in dead
        outputs = range(-1, len(graph.properties[n].output_types))
        if is_dead:
            dead.update((n, output) for output in outputs)
        elif graph.node_class(n) is NodeClass.SWITCH and graph.op(n) != _MANY_WAY and sources[1] in shapes.values:
            dead.add((n, 0 if shapes.values[sources[1]] else 1))
    return dead


def _duties(graph: JoinedGraph, dead: set[tuple[int, int]]) -> list[Duty]:
    duties = np.where(graph.of_class(*TRANSFERS), Duty.FREE, Duty.COMPUTE)
    duties[graph.sender >= 0] = Duty.TRANSFER
    duties[[n for n, output in dead if output == -1]] = Duty.DEAD
    return list(map(Duty, duties.tolist()))


def _transfers(
    graph: JoinedGraph, shapes: Sequence[tuple[Dims, ...]], cluster: Cluster, duty: list[Duty]
) -> tuple[dict[int, Route], dict[int, int]]:
    """Route and bytes of every live receive."""
    routes, sizes = {}, {}
    for n in np.flatnonzero(graph.sender >= 0).tolist():
        if duty[n] is not Duty.TRANSFER:
            continue
        route = graph.transfers.of(n).route
        routes[n] = cluster.topology.route(
            cluster.find(route.send_device).name,
            cluster.find(route.recv_device).name,
            src_on_host=graph.op(graph.sender[n]) == "_HostSend",
            dst_on_host=graph.op(n) == "_HostRecv",
        )
        sizes[n] = prod(shapes[n][0]) * item_size(graph.properties[n].output_types[0])
    return routes, sizes


def _dependencies(
    graph: JoinedGraph, dead: set[tuple[int, int]], duty: list[Duty]
) -> tuple[list[int], list[list[int]], dict[int, list[int]]]:
    """The columns `waits`, `after` and `into_merges` of `Work`."""
    waits = [0] * len(graph)
    after: list[list[int]] = [[] for _ in waits]
    into_merges: dict[int, list[int]] = {}
    for n in range(len(graph)):
        inputs = graph.inputs_of(n)
        if duty[n] is not Duty.DEAD and graph.node_class(n) is NodeClass.MERGE:
            waits[n] += 1
            for source in inputs:
                if source not in dead and not graph.is_back_edge(source[0], n):
                    into_merges.setdefault(source[0], []).append(n)
        else:
            for src, _ in inputs:
                if not graph.is_back_edge(src, n):
                    after[src].append(n)
                    waits[n] += 1
        for src in graph.controls_of(n):
            if not graph.is_back_edge(src, n):
                after[src].append(n)
                waits[n] += 1
    for recv in np.flatnonzero(graph.sender >= 0).tolist():
        after[graph.sender[recv]].append(recv)
        waits[recv] += 1
    return waits, after, into_merges


def _cost_warnings(graph: JoinedGraph, costs: list[OpCost]) -> list[str]:
    guessed = Counter(graph.op(n) for n, cost in enumerate(costs) if cost.provenance == "assumed")
    listed = ", ".join(f"{count} x {op}" for op, count in sorted(guessed.items()))
    return [f"shapes that do not fit the op cost one operation per output element: {listed}"] if guessed else []


def _control_flow_warnings(graph: JoinedGraph, dead: set[tuple[int, int]]) -> list[str]:
    switches = [n for n in np.flatnonzero(graph.of_class(NodeClass.SWITCH)).tolist() if (n, -1) not in dead]
    undecided = sum((n, 0) not in dead and (n, 1) not in dead for n in switches)
    text = f"both sides of conditions not known before the run were counted: {undecided} x Switch"
    return [text] if undecided else []
