"""What a trace says of one graph, in the forms in which the clock takes it from a caller.

    trace                                    facts
    w/mm = MatMul @ w:0 ... w:9, [2, 3]      shapes {"w/mm": ((2, 3),)}
    LoopCond @ w:0 ... w:10                  trip_counts {"w": 10}
    c/Switch = Switch, output 1 alive        branches {"p": 1}

TensorFlow's traces have no iterations: there, the order of runs stands for the order of iterations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import common_shape
from ....graph.analysis.levels import frames_of, has_frames
from ....graph.dtypes import Shapes
from ....graph.formats.trace_runs import IterationPath, TracedRun, iteration_text, runs_of
from ....graph.formats.traces import TraceSource, step_stats_of
from ....graph.library.calls import called_by
from ....graph.ops.record import Calls
from ..bodies.conditions import OF_LOOP, Conditions, predicate_names
from .called import CalledNodes, with_paths
from .coverage import Coverage, coverage_of
from .lowered_names import conditional_of, is_switch_of, loop_of
from .turns import ByTurn, by_turn, compressed, counts_of_switch, recorded_counts

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.dtypes import Shape


_FEW = 64
"""outputs of a node that are believed without a look at it"""


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What a trace says of a graph. Nodes of functions are named by the path of calls.

    `trip_counts` and `branches` are by turn (see `turns`), as `simulate` takes them. `shapes` are by output; a size
    that differs between runs is None, and nodes whose shapes differ have them by iteration in `shapes_by_iteration`.
    `times_ns` are of one run: by iteration, as a timeline writes it, where these are known, else the median.
    `warnings` say what the trace lacks, and `coverage` how many nodes of the graph it knows; None without a trace.
    """

    trip_counts: Mapping[str, ByTurn] = field(default_factory=dict)
    branches: Mapping[str, ByTurn] = field(default_factory=dict)
    shapes: Mapping[str, Shapes] = field(default_factory=dict)
    shapes_by_iteration: Mapping[str, Mapping[str, Shapes]] = field(default_factory=dict)
    times_ns: Mapping[str, int | Mapping[str, int]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    coverage: Coverage | None = None


def read_trace(source: TraceSource, graph: JoinedGraph) -> TraceFacts:
    """What the trace of a step says of a graph.

    Raises InvalidArgumentError for what is no trace, a trace without records, and a trace of another graph: one that
    has no node in common with this one; `check_coverage` is stricter. So it does for records with impossible numbers.
    """
    nodes = CalledNodes(graph)
    runs = with_paths(runs_of(step_stats_of(source)), nodes)
    by_node: defaultdict[str, list[TracedRun]] = defaultdict(list)
    for run in runs:
        by_node[run.node].append(run)
    if not any(name in by_node for name in graph.names):
        raise InvalidArgumentError(
            f"the trace is of another graph: it has {len(by_node)} nodes, none of which is among the {len(graph)} of "
            "this one"
        )
    return _Reader(graph, nodes, by_node).facts()


class _Reader:
    def __init__(self, graph: JoinedGraph, nodes: CalledNodes, runs: Mapping[str, Sequence[TracedRun]]) -> None:
        self.graph = graph
        self.nodes = nodes
        self.runs = runs
        self.counts = recorded_counts(run for own in runs.values() for run in own)
        self.knows_iterations = all(run.iteration is not None for own in runs.values() for run in own)
        self.conditions = Conditions(graph)
        self.warnings: list[str] = []

    def facts(self) -> TraceFacts:
        trip_counts = {frame: by_turn(of_frame, self.counts) for frame, of_frame in self.counts.items()}
        if not self.knows_iterations:
            trip_counts |= self._counts_by_order()
        branches = dict(self._branches())
        if not self.knows_iterations and trip_counts:
            self.warnings.append(
                f"the trace has no iterations: the order of runs told how often {_listed(trip_counts)} ran, and times "
                "of nodes in loops are medians"
            )
        return TraceFacts(
            trip_counts=trip_counts,
            branches=branches,
            shapes={node: _common(own, self._slots(node, own)) for node, own in self.runs.items()},
            shapes_by_iteration={
                node: {_where(run): _common([run], self._slots(node, own)) for run in own}
                for node, own in self.runs.items()
                if _differ(own)
            },
            times_ns={node: self._times(own) for node, own in self.runs.items()},
            warnings=self.warnings,
            coverage=coverage_of(self.graph, self.runs, {name: set(self._taken(name)) for name in self.runs}),
        )

    def _slots(self, node: str, runs: Sequence[TracedRun]) -> int:
        """How many outputs the runs of a node tell of: at most as many as it has."""
        told = max((slot + 1 for run in runs for slot in run.shapes), default=0)
        if told <= _FEW:
            return told
        properties = self.nodes.find(node)
        return min(told, _FEW if properties is None else len(properties.output_types))

    def _times(self, runs: Sequence[TracedRun]) -> int | Mapping[str, int]:
        if len(runs) == 1 or not self.knows_iterations:
            return median_low([run.duration_ns for run in runs])
        return {_where(run): run.duration_ns for run in runs}

    def _counts_by_order(self) -> Iterator[tuple[str, ByTurn]]:
        """By frame of the graph: how often it ran, from the Switches on its condition."""
        yield from self._counts_of_lowered()
        if not has_frames(self.graph):
            return
        for frame in frames_of(self.graph).all[1:]:
            for n in frame.nodes:
                if self.conditions.of.get(n) == OF_LOOP:
                    counts = counts_of_switch(self._taken(self.graph.names[n]))
                    if counts is not None:
                        yield frame.name, counts
                        break

    def _counts_of_lowered(self) -> Iterator[tuple[str, ByTurn]]:
        """By While node in a function that TensorFlow has inlined and lowered: how often it ran."""
        for condition in [name for name in self.runs if name not in self.nodes.root]:
            loop = loop_of(condition)
            if loop is not None:
                switches = (name for name in self.runs if is_switch_of(name, loop))
                counts = (counts_of_switch(self._taken(name)) for name in switches)
                known = next((count for count in counts if count is not None), None)
                if known is not None:
                    yield loop, known

    def _taken(self, name: str) -> list[int]:
        """The outputs that a Switch took, run by run."""
        return [next(iter(run.shapes)) for run in self.runs.get(name, ()) if run.shapes]

    def _branches(self) -> Iterator[tuple[str, ByTurn]]:
        """Branches by the node that calls them, by the node that was lowered, or by the one that has the predicate."""
        for node, runs in self.runs.items():
            if any(run.calls for run in runs):
                properties = self.nodes.find(node)
                if properties is not None and properties.op_def.record.calls in (Calls.IF, Calls.CASE):
                    library = next(library for library in self.graph.functions if library is not None)
                    functions = [function.name for function in called_by(properties, library)]
                    if properties.op_def.record.calls is Calls.IF:
                        functions.reverse()  # as the outputs of a Switch: 1 is then
                    taken = [functions.index(name) for run in runs for name in run.calls if name in functions]
                    if len(taken) == len(runs):
                        yield node, self._by_turn(runs, taken)
            lowered = None if node in self.nodes.root else conditional_of(node)
            if lowered is not None:
                yield lowered, self._by_turn(runs, [next(iter(run.shapes)) for run in runs if run.shapes])
        yield from self._branches_of_switches()

    def _branches_of_switches(self) -> Iterator[tuple[str, ByTurn]]:
        graph, seen = self.graph, set[str]()
        lowered = {switch: name for name, node in graph.lowered.items() for switch in node.switches}
        for n, condition in self.conditions.of.items():
            runs = [run for run in self.runs.get(graph.names[n], ()) if run.shapes]
            if not runs or condition == OF_LOOP:
                continue
            own = [lowered[graph.names[n]]] if graph.names[n] in lowered else []
            for name in [*own, *predicate_names(graph, graph.inputs_of(n)[1])]:
                if name not in seen:
                    seen.add(name)
                    yield name, self._by_turn(runs, [next(iter(run.shapes)) for run in runs])

    def _by_turn(self, runs: Sequence[TracedRun], values: Sequence[int]) -> ByTurn:
        iterations = [run.iteration for run in runs]
        known = {where: value for where, value in zip(iterations, values, strict=True) if where is not None}
        return by_turn(known, self.counts) if len(known) == len(runs) else compressed(values)


def _where(run: TracedRun) -> str:
    iteration: IterationPath = run.iteration or ()
    return iteration_text(iteration)


def _common(runs: Sequence[TracedRun], slots: int) -> Shapes:
    """What the shapes of the runs have in common, for so many outputs; None for those that were always dead."""
    by_output = _by_output(runs)
    return tuple(common_shape(by_output[slot]) if slot in by_output else None for slot in range(slots))


def _differ(runs: Sequence[TracedRun]) -> bool:
    return any(len(set(shapes)) > 1 for shapes in _by_output(runs).values())


def _by_output(runs: Sequence[TracedRun]) -> dict[int, list[Shape]]:
    shapes: dict[int, list[Shape]] = {}
    for run in runs:
        for slot, shape in run.shapes.items():
            shapes.setdefault(slot, []).append(shape)
    return shapes


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(map(repr, sorted(names)))
