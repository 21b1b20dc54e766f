"""Where the times of nodes come from: what a source of costs says of them, with the devices and shapes of a step.

    partitions = cut(graph_def, "gpu:1", feeds="x", fetches="y")
    for told in explain(partitions, "gpu:1", ["y"], feeds={"x": (32, 784)}):
        print(told.text())

y, /job:localhost/replica:0/task:0/device:GPU:0: MatMul on A100-80GB: 4.211 us, roofline
  formula   max(operations / rate, bytes / bandwidth) + overhead
  ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve

from ...collector import collector_paused
from ...errors import InvalidArgumentError
from ...graph.arrays import owners
from ...graph.ops.record import TRANSFERS
from ...graph.shape_inference.unknown_sizes import check_sizes
from ...graph.suggestions import suggestion
from ..given_cluster import as_cluster
from .bodies.node_places import calls_in
from .bodies.planning import Planner
from .collectives.explained import explanation_of_plan, members_of
from .collectives.plan import plan_of
from .collectives.seats import seated
from .costs.explanation import Explanation, explanation_of
from .costs.fitted import FittedSource
from .costs.source import CostSource, UnknownCost, unknown_cost
from .representatives.representatives import representatives_of
from .step_shapes import step_shapes
from .unmodelled import check_modelled

if TYPE_CHECKING:
    from ...graph.analysis.joined import JoinedGraph
    from ...graph.arrays import Flags
    from ...graph.formats.traces import TraceSource
    from ...graph.graph import Graph
    from ...graph.graphdef.sources import GraphSource
    from ...graph.shape_inference.infer import FedShapes, InferredShapes, Shapes
    from ..cluster import Cluster


def explain(
    partitions: Mapping[str, Graph | GraphSource],
    cluster: Cluster | str | Path,
    nodes: str | Sequence[str],
    *,
    feeds: FedShapes | None = None,
    shapes: Mapping[str, Shapes] | None = None,
    cost_source: CostSource | None = None,
    trace: TraceSource | None = None,
    assumed_size: int | None = None,
) -> list[Explanation]:
    """Where the time of each node comes from, in the order of `nodes`; the other arguments are those of `simulate`.

    Nodes are those of the partitions; that of a collective has the time of all members together. Raises
    InvalidArgumentError for a node that these do not have, for a transfer and a call, whose times are those of links
    and of a body, and for sizes that the time depends on and nobody knows; UnimplementedError for a node that cannot
    be timed; UnknownCost where the source knows no time.
    """
    names = [nodes] if isinstance(nodes, str) else list(nodes)
    cluster = as_cluster(cluster)
    source = cost_source or FittedSource()
    with collector_paused():
        inferred = step_shapes(partitions, cluster, feeds, shapes, trace, assumed_size).inferred
        graph = inferred.graph
        numbers = [_number(name, graph) for name in names]
        is_asked = np.zeros(len(graph), np.bool_)
        is_asked[numbers] = True
        check_modelled(graph, is_asked)
        _check_computes(graph, numbers)
        check_sizes(inferred, _with_neighbours(graph, is_asked))
        members = set(seated(graph))
        planner = Planner(cluster, source, representatives=representatives_of(graph, cluster))
        computing = [number for number in numbers if number not in members]
        requests = planner.requests(inferred, computing)
    try:
        told = {n: explanation_of(source, request) for n, request in zip(computing, requests, strict=True)}
    except UnknownCost:
        raise unknown_cost(source, requests, [graph.names[n] for n in computing]) from None
    told |= {n: _of_collective(n, inferred, planner) for n in numbers if n in members}
    places = [cluster.find(graph.devices[number]).name for number in graph.device_of[numbers].tolist()]
    return [evolve(told[n], node=name, device=place) for n, name, place in zip(numbers, names, places, strict=True)]


def _of_collective(n: int, inferred: InferredShapes, planner: Planner) -> Explanation:
    """The time of a collective that a node takes part in, if it has its links to itself."""
    graph, cluster, standing = inferred.graph, planner.cluster, planner.representatives
    if standing is not None:
        own, size = planner.seats(inferred, [n])[n]
        device = cluster.find(graph.devices[graph.device_of[n]]).name
        seat = standing.seat(graph, n, cluster.numbers[device], own)
        names = [cluster.devices[number].name for number in seat.devices]
        return explanation_of_plan(graph.op(n), plan_of(seat.kind, names, size, cluster, planner.calibration))
    seat, members = members_of(graph, n, lambda source, output: inferred.values.get((source, output)))
    sizes = [planner.seats(inferred, [member])[member].size_bytes for member in members]
    ranks = [cluster.find(graph.devices[number]).name for number in graph.device_of[members].tolist()]
    plan = plan_of(seat.kind, ranks, max(sizes), cluster, planner.calibration)
    return explanation_of_plan(graph.op(n), plan)


def _number(name: str, graph: JoinedGraph) -> int:
    number = graph.numbers([name]).get(name)
    if number is None:
        raise InvalidArgumentError(f"the step has no node {name!r}{suggestion(name, graph.names)}")
    return number


def _with_neighbours(graph: JoinedGraph, nodes: Flags) -> Flags:
    """The nodes, those whose tensors they read, and those that read theirs."""
    dst = owners(np.diff(graph.input_start))
    found = nodes.copy()
    found[graph.input_src[nodes[dst]]] = True
    found[dst[nodes[graph.input_src]]] = True
    return found


def _check_computes(graph: JoinedGraph, numbers: Sequence[int]) -> None:
    """InvalidArgumentError for a transfer or a call among the nodes."""
    is_transfer, is_call = graph.of_class(*TRANSFERS), calls_in(graph)
    for n in numbers:
        why = ""
        if is_transfer[n]:
            why = "a transfer takes the time of its bytes on its links; simulate the step to see it"
        elif is_call[n]:
            why = (
                "a call takes the time of its body, whose nodes are in the step without --no-inline "
                "(`cut(..., inline=True)`)"
            )
        if why:
            raise InvalidArgumentError(why, node=graph.names[n], op=graph.op(n))
