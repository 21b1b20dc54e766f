"""Partitions -> Timeline: how long a step takes on a cluster, without computing a single value.

Flows in: one graph per device as partitioning leaves them, a cluster, shapes of the feeds, a cost source. Flows out: a
`Timeline`. Always holds: the same input gives the same timeline, byte for byte; what had to be assumed stands in the
timeline's warnings; graphs are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...graph.dtypes import Array, Shape, item_size
from ...graph.graph import Graph
from ...graph.importer import Serialisable, graph_def_to_graph
from ...graph.joined import JoinedGraph
from ...graph.memory_types import memory_types
from ...graph.node import NodeClass
from ...graph.shape_inference import Feeds, Shapes, infer_joined
from ..cluster import Cluster
from ..memory import Buffer, Place, peaks
from ..units import format_bytes
from .cluster import SimulatedCluster
from .cost_source import CostSource, RooflineSource
from .op_cost import is_view
from .timeline import Timeline
from .work import Duty, Work, plan_work

_WHOLE_STEP_OPS = frozenset({"Const", "HostConst", "Variable", "VariableV2"})


def simulate(
    partitions: Mapping[str, Graph | Serialisable],
    cluster: Cluster,
    *,
    feeds: Feeds | None = None,
    shapes: Mapping[str, Shapes] | None = None,
    cost_source: CostSource | None = None,
    assumed_size: int = 1,
) -> Timeline:
    """The timeline of one step.

    `partitions` maps device names to the graphs (or GraphDefs) that run there. `feeds` maps fed tensors to shapes or
    arrays; `shapes` maps nodes to output shapes that are known from elsewhere, such as a run. `cost_source` is the
    roofline unless given. Sizes that stay unknown count as `assumed_size`, which the warnings then say.

    Raises InvalidArgumentError for a device that the cluster lacks, for partitions that do not fit together, for shapes
    that contradict an op, and for a step in which nothing takes time.
    """
    graphs = {place: _as_graph(graph) for place, graph in partitions.items()}
    joined = JoinedGraph(graphs)
    given = {**_as_feeds(shapes or {}, joined), **(feeds or {})}
    work = plan_work(infer_joined(joined, given, assumed_size=assumed_size), cluster, cost_source or RooflineSource())
    machines = SimulatedCluster(work)
    machines.run()
    return _timeline(work, machines, cluster)


def _as_feeds(shapes: Mapping[str, Shapes], joined: JoinedGraph) -> dict[str, Shape | Array]:
    names = set(joined.names)
    return {f"{n}:{i}": shape for n, outputs in shapes.items() if n in names for i, shape in enumerate(outputs)}


def _as_graph(graph: Graph | Serialisable) -> Graph:
    if isinstance(graph, Graph):
        return graph
    return graph_def_to_graph(graph, add_default_attrs=True, allow_internal_names=True, expect_device=True)


def _timeline(work: Work, machines: SimulatedCluster, cluster: Cluster) -> Timeline:
    peak = peaks(_buffers(work, machines, cluster))
    return Timeline(
        machines.log.events(work),
        warnings=work.warnings + _memory_warnings(peak, cluster),
        peak_bytes=peak,
        dependency_bound_ns=_dependency_bound_ns(work),
    )


def _memory_warnings(peak: Mapping[tuple[str, Place], int], cluster: Cluster) -> list[str]:
    warnings = []
    for (name, place), used in peak.items():
        spec = cluster.find(name).spec
        limit = spec.memory_bytes if place == "device" else spec.host_memory_bytes
        if limit and used > limit:
            warnings.append(f"{name} needs {format_bytes(used)} of {place} memory and has {format_bytes(limit)}")
    return warnings


def _dependency_bound_ns(work: Work) -> int:
    """The longest chain of durations along edges, as if there were any number of streams and links."""
    graph, done = work.graph, [0] * len(work.graph)
    for n in graph.order():
        before = [done[src] for src in graph.controls[n] if not graph.is_back_edge(src, n)]
        data = [done[src] for src, _ in graph.inputs[n] if not graph.is_back_edge(src, n)]
        if graph.classes[n] is NodeClass.MERGE:
            data = [min(data)] if data else []
        if n in graph.sender:
            data.append(done[graph.sender[n]])
        took = work.transfer_ns.get(n, work.cost[n].time_ns)
        done[n] = max(before + data, default=0) + took
    return max(done, default=0)


def _buffers(work: Work, machines: SimulatedCluster, cluster: Cluster) -> list[Buffer]:
    """Every output's buffer, from when its producer starts to when the last reader of it, or of a view of it, ends."""
    graph = work.graph
    roots = _roots(work)
    last_use = {output: machines.log.end_ns[output[0]] for output in set(roots.values())}
    for n, inputs in enumerate(graph.inputs):
        for source in inputs:
            root = roots.get(source)
            if root is not None:
                last_use[root] = max(last_use[root], machines.log.end_ns[n])
    for recv, send in graph.sender.items():
        root = roots.get(graph.inputs[send][0])
        if root is not None:
            last_use[root] = max(last_use[root], machines.log.end_ns[recv])
    makespan = max(machines.log.end_ns, default=0)
    return [
        _buffer(work, n, output, machines.log.start_ns[n], end, makespan, cluster)
        for (n, output), end in sorted(last_use.items())
    ]


def _roots(work: Work) -> dict[tuple[int, int], tuple[int, int]]:
    """Every live output -> the output whose buffer it is: its own, or through views that of another node."""
    graph = work.graph
    roots: dict[tuple[int, int], tuple[int, int]] = {}
    for n in graph.order():
        if work.duty[n] is Duty.DEAD:
            continue
        inputs, same_memory = graph.inputs[n], n in work.routes and not work.routes[n].links
        if same_memory:
            inputs = graph.inputs[graph.sender[n]]
        for output in range(len(work.shapes[n])):
            own = n, output
            if inputs and (same_memory or is_view(graph.ops[n])):
                viewed = inputs[output if graph.ops[n] == "IdentityN" else 0]
                roots[own] = roots.get(viewed, own)
            else:
                roots[own] = own
    return roots


def _buffer(work: Work, n: int, output: int, start: int, end: int, makespan: int, cluster: Cluster) -> Buffer:
    properties = work.graph.properties[n]
    dims: Sequence[int] = work.shapes[n][output]
    dtype = properties.output_types[output]
    if properties.op == "VarHandleOp":
        dims = [size or 1 for size in properties.attrs["shape"] or ()]
        dtype = properties.attrs["dtype"]
    if properties.op in _WHOLE_STEP_OPS or properties.op == "VarHandleOp":
        start, end = 0, makespan
    device = cluster.find(work.devices[work.device[n]])
    on_host = device.type != "CPU" and memory_types(properties, device.type)[1][output]
    return Buffer(device.name, "host" if on_host else "device", start, end, prod(dims) * item_size(dtype))
