"""Partitions -> Timeline: how long a step takes on a cluster, from shapes and models of hardware, without values.

The same input gives the same timeline. Every assumption is a warning of the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...errors import InvalidArgumentError
from ...graph.analysis.joined import JoinedGraph
from ...graph.collector import collector_paused
from ...graph.dtypes import Array, Shape
from ...graph.graph import Graph
from ...graph.graphdef.importer import graph_def_to_graph
from ...graph.graphdef.sources import GraphSource
from ...graph.ops.record import NodeClass
from ...graph.shape_inference.infer import Feeds, Shapes, infer_joined
from ..cluster import Cluster
from ..cluster_file import as_cluster
from .cluster import SimulatedCluster
from .cost_source import CostSource, RooflineSource
from .feeds import checked_feeds
from .log import StepLog
from .memory.buffers import buffers_of
from .memory.kinds import address_spaces
from .memory.tensors import tensors_of
from .memory.times import Times
from .memory.use import MemoryUse, limits_of
from .timeline import Timeline
from .work import Work, plan_work


def simulate(
    partitions: Mapping[str, Graph | GraphSource],
    cluster: Cluster | str | Path,
    *,
    feeds: Feeds | None = None,
    shapes: Mapping[str, Shapes] | None = None,
    cost_source: CostSource | None = None,
    assumed_size: int | None = None,
) -> Timeline:
    """The timeline of one step.

    `partitions` maps device names to the graphs (or GraphDefs) that run there; `cluster` may be given as a text such as
    "gpu:2" or the path of a file. `feeds` maps fed tensors to shapes (tuples) or values (arrays); a feed that is left
    out has the shape of its placeholder. `shapes` maps nodes to output shapes known from elsewhere, such as a run.
    `cost_source` is the roofline by default. With `assumed_size` unknown sizes count as that number, with a warning.

    Raises InvalidArgumentError for a device that the cluster lacks, for partitions that do not fit together, for feeds
    of another type or shape than the graph's or that it was not cut for, for shapes that contradict an op, for a size
    that a cost needs and nobody knows, and for a step that takes 0 ns; UnimplementedError for calls of functions (`cut`
    can inline them), loops, and collectives.
    """
    cluster = as_cluster(cluster)
    graphs = {cluster.find(place).name: _as_graph(graph) for place, graph in _checked(partitions).items()}
    with collector_paused():
        joined = JoinedGraph(graphs)
        all_feeds = {**_as_feeds(shapes or {}, joined), **checked_feeds(feeds or {}, joined)}
        inferred = infer_joined(joined, all_feeds, assumed_size=assumed_size)
        work = plan_work(inferred, cluster, cost_source or RooflineSource())
        machines = SimulatedCluster(work)
        machines.run()
        return _timeline(work, machines, cluster)


def _as_feeds(shapes: Mapping[str, Shapes], joined: JoinedGraph) -> dict[str, Shape | Array]:
    names = joined.numbers(shapes)
    return {
        f"{n}:{i}": shape
        for n, outputs in shapes.items()
        if n in names
        for i, shape in enumerate(outputs)
        if shape is not None
    }


def _checked(partitions: Mapping[str, Graph | GraphSource]) -> Mapping[str, Graph | GraphSource]:
    """InvalidArgumentError for a single graph instead of a graph per device."""
    if not isinstance(partitions, Mapping):
        raise InvalidArgumentError(
            f"partitions: {type(partitions).__name__} is not a mapping from device names to graphs; "
            "cut the graph first, with partita.devices.cut"
        )
    return partitions


def _as_graph(graph: Graph | GraphSource) -> Graph:
    if isinstance(graph, Graph):
        return graph
    return graph_def_to_graph(graph, add_default_attrs=True, allow_internal_names=True, expect_device=True)


def _timeline(work: Work, machines: SimulatedCluster, cluster: Cluster) -> Timeline:
    memory = _memory(work, machines.log, cluster)
    return Timeline(
        machines.log.events(work),
        warnings=work.warnings + _spec_warnings(work.devices, cluster) + memory.warnings(),
        memory=memory,
        dependency_bound_ns=_dependency_bound_ns(work),
        models={device.name: device.spec.name for device in cluster},
    )


def _memory(work: Work, log: StepLog, cluster: Cluster) -> MemoryUse:
    devices = [cluster.find(name) for name in work.devices]
    is_copied = np.zeros(len(work.graph), np.bool_)
    is_copied[[n for n, route in work.routes.items() if route.links]] = True
    tensors = tensors_of(work.graph, work.shapes, devices, work.device, is_copied)
    times = Times(*(np.array(column, np.int64) for column in (log.start_ns, log.end_ns, log.order())))
    buffers = buffers_of(tensors, times, np.array(address_spaces(devices)))
    return MemoryUse(tensors, buffers, work.devices, limits_of(cluster), lambda n: (work.graph.names[n], ""))


def _spec_warnings(devices: Sequence[str], cluster: Cluster) -> list[str]:
    """A warning per set of defaults that specs of devices in this step rely on."""
    names: dict[str, list[str]] = {}
    for name in devices:
        assumed = cluster.find(name).spec.assumed
        if assumed:
            names.setdefault(", ".join(f"{key} {text}" for key, text in assumed.items()), []).append(name)
    return [f"assumed, as the cluster does not say: {text} of {', '.join(which)}" for text, which in names.items()]


def _dependency_bound_ns(work: Work) -> int:
    """The longest chain of durations along edges: the makespan with unlimited streams and links."""
    graph, done = work.graph, [0] * len(work.graph)
    for n in graph.order().tolist():
        before = [done[src] for src in graph.controls_of(n) if not graph.is_back_edge(src, n)]
        data = [done[src] for src, _ in graph.inputs_of(n) if not graph.is_back_edge(src, n)]
        if graph.node_class(n) is NodeClass.MERGE:
            data = [min(data)] if data else []
        if graph.sender[n] >= 0:
            data.append(done[graph.sender[n]])
        took = work.occupied_ns[n] + work.latency_ns[n] if n in work.routes else work.cost[n].time_ns
        done[n] = max(before + data, default=0) + took
    return max(done, default=0)
