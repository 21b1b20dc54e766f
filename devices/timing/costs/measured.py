"""Costs that were measured: the median of all runs of equal ops on one model of device, from traces of real steps.

    trace      mm = MatMul(x, w)   53 us, 51 us, 58 us, on /device:GPU:0, an H100-SXM
    graph      mm: MatMul of float, (64, 128) x (128, 256) -> (64, 256)
    known      (MatMul, attrs, types, shapes, "H100-SXM")  ->  53 us, from 51 to 57 us, "measured"

A node in another step is the same if all of that is equal; its name does not matter. Of an op that no trace has, the
source knows nothing (`UnknownCost`): put another one behind it with `FirstKnown`. Free ops are free, as in the
roofline: the time that a real step spends on them is its executor's. Operations and bytes are the roofline's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.joined import JoinedGraph
from ....graph.formats.cost_graphs import measured_nodes
from ....graph.formats.trace_runs import runs_by_device
from ....graph.formats.traces import TraceSource, step_stats_of
from ....graph.graph import Graph
from ....graph.graphdef.importer import graph_def_to_graph
from ....graph.graphdef.sources import Serialisable
from ....graph.shape_inference.infer import infer_joined
from ...given_cluster import as_cluster
from ...kernels.op_cost import is_free
from ..bodies.body import sizes_of
from ..bodies.places import HostMemory, hosts_of
from ..tracing.called import CalledNodes, with_paths
from ..tracing.facts import read_trace
from ..tracing.shapes import missing_shapes
from ..tracing.spread import SINGLE_RUN_PERCENT, Spread, spread_of
from .cache import CostCache
from .explanation import Explanation
from .roofline import datasheet_ns, explain_roofline, roofline
from .source import CostRequest, OpCost, UnknownCost, context

if TYPE_CHECKING:
    from ....graph.dtypes import Shape
    from ....graph.graphdef.sources import GraphSource
    from ....graph.ops.properties import NodeProperties
    from ....graph.shape_inference.infer import Shapes
    from ...cluster import Cluster
    from ...kernels.op_cost import PortDims
    from ...spec import DeviceSpec

Graphs: TypeAlias = "Mapping[str, Graph | GraphSource] | Graph | GraphSource"
_TimedKey: TypeAlias = "tuple[str, str, tuple[Hashable, ...], PortDims, PortDims, str]"


class MeasuredSource:
    """The measured times of ops by (op, attrs, types, shapes, model of device)."""

    def __init__(self, times_ns: Mapping[_TimedKey, list[int]]) -> None:
        """`times_ns` are all runs by key; `from_step_stats` and `from_cost_model` make them."""
        self._spreads: dict[_TimedKey, Spread] = {key: spread_of(times) for key, times in times_ns.items()}
        self._runs = {key: len(times) for key, times in times_ns.items()}
        self._cache = CostCache()

    def __len__(self) -> int:
        """The number of different ops that it knows."""
        return len(self._spreads)

    @classmethod
    def from_step_stats(cls, stats: TraceSource, graphs: Graphs, cluster: Cluster | str | Path) -> MeasuredSource:
        """The times of a trace: StepStats or RunMetadata as a message, as bytes, or as the path of a file.

        `graphs` is what ran: the graph of each device by its name, or one graph of all. Shapes follow from the graphs,
        and from the trace where they do not tell. InvalidArgumentError for a trace of other graphs or devices, and for
        one of which no op is found in the graphs.
        """
        return cls(_times_by_key(ops_of_step(stats, graphs, as_cluster(cluster))))

    @classmethod
    def from_cost_model(
        cls, costs: Serialisable | bytes | str | Path, graphs: Graphs, cluster: Cluster | str | Path
    ) -> MeasuredSource:
        """The times of a CostGraphDef, or of the cost graph in a RunMetadata: a message, bytes, or a path.

        A cost model has one time of a node, its longest run in whole microseconds. Nodes of 0 us did not run. Raises as
        `from_step_stats`.
        """
        hardware, joined = as_cluster(cluster), _joined(graphs, as_cluster(cluster))
        nodes = measured_nodes(costs)
        here = [node for node in nodes if node.device in hardware]
        if not here:
            raise InvalidArgumentError(
                f"the cost model has no time of a node on a device of the cluster ({len(nodes)} nodes with times); "
                "give the cluster that ran it, and a model of steps that ran"
            )
        runs = {node.name: _Runs(node.device, [node.time_ns]) for node in here}
        return cls(_times_by_key(_ops(joined, hardware, runs, {node.name: node.shapes for node in here})))

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The median of all runs, with the 10th and 90th percentile; UnknownCost for an op that never ran so."""
        request = CostRequest(properties, inputs, outputs, spec)
        cost = self._cache.get(request)
        return self._cache.put(request, self._cost(request)) if cost is None else cost

    def explain(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> Explanation:
        """Of how many runs the cost is the median; UnknownCost as `cost`."""
        cost, c = self.cost(properties, inputs, outputs, spec), context(properties, inputs, outputs)
        if cost.provenance == "free":
            return explain_roofline(c, spec)
        runs = self._runs[_key(CostRequest(properties, inputs, outputs, spec))]
        alone = f"a single run was measured: four of five are taken to be within {SINGLE_RUN_PERCENT} % of it"
        return Explanation(
            f"{c.op} on {spec.name}",
            cost,
            "the median of the measured runs of ops with these attrs, types and shapes on this model of device",
            rows="1 run" if runs == 1 else f"{runs} runs",
            null_model=("datasheet roofline", datasheet_ns(cost, c, spec)),
            assumed=(alone,) if runs == 1 else (),
        )

    def _cost(self, request: CostRequest) -> OpCost:
        counted = roofline(context(*request[:3]), request.spec)
        if counted.provenance == "free":
            return counted
        spread = self._spreads.get(_key(request))
        if spread is None:
            op = request.properties.op
            raise UnknownCost(f"none of the {len(self)} measured ops is {op} of these shapes and attrs")
        return counted._replace(**spread._asdict(), provenance="measured")


class MeasuredOp(NamedTuple):
    """A node that ran: what it is, its shapes, the model of device that it ran on, and the time of each run."""

    node: str
    request: CostRequest
    times_ns: list[int]


def ops_of_step(stats: TraceSource, graphs: Graphs, cluster: Cluster) -> list[MeasuredOp]:
    """The ops of a trace that take time and whose shapes are known; arguments and errors are those of a source.

    A node that computes in host memory ran on the host of the device that recorded it.
    """
    joined, message = _joined(graphs, cluster), step_stats_of(stats)
    runs: dict[str, _Runs] = {}
    nodes = CalledNodes(joined)
    for device, of_device in runs_by_device(message).items():
        if device in cluster:
            for run in with_paths(of_device, nodes):
                runs.setdefault(run.node, _Runs(device)).times_ns.append(run.duration_ns)
    if not runs:
        names = ", ".join(sorted(device.device for device in message.dev_stats))
        raise InvalidArgumentError(
            f"the trace has no ops on a device of the cluster, but on {names}; give the cluster that ran it"
        )
    return _ops(joined, cluster, runs, read_trace(message, joined).shapes)


@dataclass(slots=True)
class _Runs:
    """The runs of one node on the device that recorded them."""

    device: str
    times_ns: list[int] = field(default_factory=list)


def _key(request: CostRequest) -> _TimedKey:
    """What makes two ops the same; attrs that begin with "_" are notes of a pass and no part of it."""
    properties, inputs, outputs, spec = request
    attrs = sorted((name, repr(value)) for name, value in properties.attrs.items() if not name.startswith("_"))
    types = (*properties.input_types, None, *properties.output_types)
    return properties.op, repr(attrs), types, inputs, outputs, spec.name


def _joined(graphs: Graphs, cluster: Cluster) -> JoinedGraph:
    """The graphs as one; a single graph counts as that of the client."""
    if not isinstance(graphs, Mapping):
        graphs = {cluster.client.name: graphs}
    by_name = {cluster.find(place).name: graph for place, graph in graphs.items()}
    return JoinedGraph(
        {
            name: graph
            if isinstance(graph, Graph)
            else graph_def_to_graph(graph, add_default_attrs=True, allow_internal_names=True)
            for name, graph in by_name.items()
        }
    )


def _times_by_key(ops: Iterable[MeasuredOp]) -> dict[_TimedKey, list[int]]:
    times: defaultdict[_TimedKey, list[int]] = defaultdict(list)
    for op in ops:
        times[_key(op.request)] += op.times_ns
    return dict(times)


def _ops(
    joined: JoinedGraph, cluster: Cluster, runs: Mapping[str, _Runs], traced: Mapping[str, Shapes]
) -> list[MeasuredOp]:
    """The ops whose shapes are known; InvalidArgumentError if there is none."""
    inferred = infer_joined(joined, missing_shapes(infer_joined(joined, {}), traced, ()))
    number_of = {name: number for number, name in enumerate(cluster.names)}
    device = np.zeros(len(joined), np.int64)
    ran = [n for n, name in enumerate(joined.names) if name in runs]
    device[ran] = [number_of[cluster.find(runs[joined.names[n]].device).name] for n in ran]
    on_host = HostMemory(joined, device, cluster).is_host_node
    priced_on = np.where(on_host, hosts_of(cluster)[device], device)
    ops = []
    for n in ran:
        case = int(inferred.case_of[n])
        read, written = inferred.read(case), inferred.written(case)
        if joined.sender[n] < 0 and not is_free(joined.op(n)) and all(map(_is_known, chain(read, written))):
            spec, name = cluster.devices[int(priced_on[n])].spec, joined.names[n]
            request = CostRequest(joined.properties[n], sizes_of(read), sizes_of(written), spec)
            ops.append(MeasuredOp(name, request, runs[name].times_ns))
    if not ops:
        raise InvalidArgumentError(
            f"none of the {len(runs)} nodes with times is an op of the {len(joined)} nodes of the graph with known "
            "shapes; give the graph that ran"
        )
    return ops


def _is_known(shape: Shape) -> bool:
    return shape is not None and None not in shape
