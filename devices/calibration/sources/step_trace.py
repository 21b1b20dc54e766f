"""The trace of a step, a StepStats or RunMetadata in a file `.pb`: the ops of one model of device with their times.

    trace      mm on /device:GPU:0   53 us, 51 us, 58 us
    graph      mm: MatMul of bfloat16, (64, 128) x (128, 256)
    row        TimedProduct(64, 256, 128, 1, "NN", 53000)             the median of its runs

A RunMetadata has the graph of each device where the step was asked for `output_partition_graphs`; else the graph is
another file. Every device of the trace that is of the kind of the calibrated one counts as one of that model. Nodes of
other devices, of hosts and of unknown shapes are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ....errors import InvalidArgumentError, PartitaError
from ....graph.device_name import ParsedName, find_full_name
from ....graph.formats.trace_runs import runs_by_device
from ....graph.formats.traces import partition_graphs_of, step_stats_of
from ....graph.graphdef.files import load_graph_def
from ....graph.graphdef.sources import GraphSource
from ....graph.ops.device_kinds import CPU
from ...cluster import Cluster, default_spec
from ...device import Device
from ...kinds import cluster_kinds
from ...spec import DeviceSpec
from ...tables import naming
from ...timing.costs.measured import MeasuredOp, ops_of_step
from ...timing.costs.source import context
from ...timing.tracing.spread import spread_of
from .measurements import MeasuredRow, Measurements, Refused, sorted_rows
from .op_rows import row_of


def is_step_trace(path: Path) -> bool:
    """Whether a file is a binary message, by its name."""
    return path.suffix == ".pb"


def read_step_trace(path: Path, spec: DeviceSpec, graph: Path | None = None) -> Measurements:
    """A row for each node that ran on a device like `spec`; `graph` is a GraphDef, in place of the trace's own.

    InvalidArgumentError for a file that is no trace, that has no graph or of another one, and for a trace without such
    devices or ops.
    """
    with naming(str(path), PartitaError):
        cluster = _cluster_of(path, spec)
        ops = ops_of_step(path, _graphs_of(path, graph), cluster)
    rows = [_row(op, f"{path}: node {op.node!r}") for op in ops if op.request.spec is spec]
    if not rows:
        raise InvalidArgumentError(
            f"{path}: no op with known shapes ran on a {spec.kind}; trace a step whose shapes do not depend on feeds"
        )
    return sorted_rows(rows)


def _row(op: MeasuredOp, where: str) -> MeasuredRow:
    time_ns = float(spread_of(op.times_ns).time_ns)
    if time_ns <= 0:
        return Refused(where, "the trace says that it took no time")
    return row_of(context(*op.request[:3]), time_ns, where, op.request.spec)


def _graphs_of(path: Path, graph: Path | None) -> Mapping[str, GraphSource] | GraphSource:
    """What ran: one graph, or by device those of the trace."""
    if graph is not None:
        return load_graph_def(graph)
    graphs: dict[str, GraphSource] = {}
    for part in partition_graphs_of(path):
        device = next((node.device for node in part.node if node.device), "")
        if device:
            graphs[device] = part
    if not graphs:
        raise InvalidArgumentError("the trace has no graph; give the GraphDef that ran with --graph FILE")
    return graphs


def _cluster_of(path: Path, spec: DeviceSpec) -> Cluster:
    """The devices of a trace, those of the kind of `spec` being such, each task with a CPU first."""
    named = [find_full_name(name) for name in runs_by_device(step_stats_of(path))]
    full = {name for name in named if name is not None and name.is_full and name.type in cluster_kinds()}
    if not any(name.type == spec.kind for name in full):
        kinds = ", ".join(sorted({str(name) for name in full})) or "no device"
        raise InvalidArgumentError(f"the trace has ops on {kinds}, but {spec.name} is a {spec.kind}; trace such a step")
    places = {_place(name) for name in full}
    places |= {(job, replica, task, CPU.name, 0) for job, replica, task, _, _ in places}
    specs = {kind: spec if kind == spec.kind else default_spec(kind) for kind in {place[3] for place in places}}
    in_order = sorted(places, key=lambda place: (place[3] != CPU.name, place))
    return Cluster([Device(specs[kind], index, job, replica, task) for job, replica, task, kind, index in in_order])


def _place(name: ParsedName) -> tuple[str, int, int, str, int]:
    """The parts of a full name."""
    return name.job or "", name.replica or 0, name.task or 0, name.type or "", name.id or 0
