"""What a step on simulated hardware has done, and its timeline.

While the step runs only facts of single rows are kept: costs, shapes of outputs, bytes received. When somebody asks for
the timeline, they become the activations that the player of a simulation has: one for every run of a graph, and one for
every further iteration of a loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ....devices.timing.hardware.engine import Duty
from ....devices.timing.hardware.log import KINDS, Log
from ....devices.timing.playing.holding import memory_of
from ....devices.timing.playing.played_graph import shapes_of_rows
from ....devices.timing.playing.recording import events_of
from ....devices.timing.simulate import spec_assumptions, spec_warnings
from ....devices.timing.timeline import LinkLoad, Timeline
from ...plans.instructions import DEAD
from .body import FREE, dims_of
from .bound import bound_ns
from .ran_graph import RanGraph
from .rows import Called, Rows, RunOfCall, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ....devices.cluster import Cluster
    from ....devices.timing.costs.source import OpCost
    from ....devices.timing.memory.use import MemoryUse
    from ....devices.topology import Route
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Numbers
    from ....graph.columns import Ids
    from ....graph.shape_inference.calls import Shapes
    from .body import VirtualBody
    from .clock import VirtualClock

_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class RanBody:
    """What ran of a body; a `recording.RecordedBody`, and with the shapes of its tensors a `tensors.TensorShapes`."""

    graph: JoinedGraph
    device: Numbers
    duty: NDArray[np.uint8]
    costs: list[OpCost]
    cost_of: Numbers
    routes: dict[int, Route]
    copied_bytes: dict[int, int]
    distinct: list[Shapes]
    shape_of: Ids

    def __len__(self) -> int:
        return len(self.device)

    def of(self, n: int) -> Shapes:
        """The shapes of the outputs of a node."""
        return self.distinct[int(self.shape_of[n])]


class Activation(NamedTuple):
    """One run of a body; a `recording.PlayedBody`."""

    body: RanBody
    base: int
    prefix: str
    iteration: str


class OwnEntries(NamedTuple):
    """What a step has done; a `recording.Played`."""

    log: Log
    activations: list[Activation]


class StepRecord:
    """The rows of one step."""

    def __init__(self, clock: VirtualClock) -> None:
        """The step starts now."""
        self._cluster = clock.cluster
        self._log = clock.engine.log
        self._engine = clock.engine
        self._start_ns = self._end_ns = clock.engine.now()
        self._first_entry = self._end_entry = len(self._log)
        self._rows: dict[int, Rows] = {}

    def began(self, base: int, body: VirtualBody, scope: str, iteration: str, run: int, turn: Turn) -> None:
        """An iteration of a graph has rows from `base` on; the run that it belongs to has them from `run` on."""
        self._rows[base] = Rows(base, body, scope, iteration, run, turn)

    def called(self, base: int, row: int, number: int, turn: str) -> None:
        """A node has called the graph that runs from `base` on, for a turn as in `Callee.start`."""
        calls = self._rows[row - number].calls.setdefault(number, [])
        before = [call.base for call in calls if call.gives_results and turn.endswith(("b", "c"))]
        self._rows[base].called = Called(row, before[-1] if before else -1)
        calls.append(RunOfCall(base, not turn.endswith("c")))

    def fed(self, row: int, number: int, port: int, source: int) -> None:
        """A node has got an input, by control with port -1, from the row of another iteration."""
        rows = self._rows[row - number]
        if port < 0:
            rows.released_by.append((number, source))
        else:
            rows.fed[number, port] = source

    def ran(self, row: int, number: int, cost: OpCost, outputs: list[Any], size_bytes: int) -> None:
        """A node has been computed, sent or received; called before or when it is logged."""
        rows = self._rows[row - number]
        rows.costs[number] = cost
        rows.shapes[number] = tuple(None if output is DEAD else dims_of(output) for output in outputs)
        rows.sizes[number] = size_bytes

    def close(self) -> None:
        """The step has ended: later entries of the log are not its own."""
        self._end_entry, self._end_ns = len(self._log), self._engine.now()

    def timeline(self) -> Timeline:
        """The timeline of the step, from 0. InvalidArgumentError for one that took no simulated time."""
        rows, cluster = list(self._rows.values()), self._cluster
        played = OwnEntries(self._own_log(rows), _activations(rows))
        ran = RanGraph(rows)
        memory = _memory(played, ran, cluster)
        numbers = np.unique(np.concatenate([activation.body.device for activation in played.activations])).tolist()
        used = [cluster.names[number] for number in numbers]
        return Timeline(
            events_of(played, cluster.names),
            warnings=spec_warnings(used, cluster) + memory.warnings(),
            assumed=spec_assumptions(used, cluster),
            memory=memory,
            dependency_bound_ns=lambda: bound_ns(ran, played.activations),
            models={device.name: device.spec.name for device in cluster},
            link_loads=self._link_loads,
        )

    def _own_log(self, rows: list[Rows]) -> Log:
        """The entries of the step, its rows numbered from 0 and its times counted from its start.

        A cause that belongs to another step is left out.
        """
        entries, causes, start_ns, end_ns = (
            np.array(column[self._first_entry : self._end_entry], np.int64)
            for column in (self._log.entries, self._log.causes, self._log.start_ns, self._log.end_ns)
        )
        row, kind = np.divmod(entries, KINDS)
        bases, lengths = np.array([r.base for r in rows], np.int64), np.array([len(r.body) for r in rows], np.int64)
        owner = np.searchsorted(bases, row, "right") - 1
        own = np.flatnonzero((owner >= 0) & (row < bases[owner] + lengths[owner]))
        number = np.full(len(entries) + 1, -1)
        number[own] = np.arange(len(own))
        shift = np.cumsum(lengths) - lengths - bases
        log = Log()
        for column, values in (
            (log.entries, (row[own] + shift[owner[own]]) * KINDS + kind[own]),
            (log.causes, number[np.maximum(causes[own] - self._first_entry, -1)]),
            (log.start_ns, start_ns[own] - self._start_ns),
            (log.end_ns, end_ns[own] - self._start_ns),
        ):
            column.frombytes(values.tobytes())
        self._copy_own(self._log.lanes, log.lanes, number)
        self._copy_own(self._log.bottlenecks, log.bottlenecks, number)
        return log

    def _copy_own(self, source: Mapping[int, _Fact], target: dict[int, _Fact], number: Numbers) -> None:
        """Copies what the log says of entries of the step; `number` has their numbers in its own log, -1 for others."""
        for entry, fact in source.items():
            if self._first_entry <= entry < self._end_entry and number[entry - self._first_entry] >= 0:
                target[int(number[entry - self._first_entry])] = fact

    def _link_loads(self, link: str) -> list[LinkLoad]:
        """What a link carried during the step, for whatever step that was under way."""
        start, end = self._start_ns, self._end_ns
        loads = [(max(a, start), min(b, end), load) for a, b, load in self._engine.network.loads(link)]
        return [(a - start, b - start, load) for a, b, load in loads if a < b]


def _activations(rows: list[Rows]) -> list[Activation]:
    base, activations = 0, []
    for r in rows:
        activations.append(Activation(_ran(r), base, r.scope, r.iteration))
        base += len(r.body)
    return activations


def _ran(rows: Rows) -> RanBody:
    """What an activation ran, with the costs and shapes that its nodes had."""
    virtual, graph, count = rows.body, rows.body.graph, len(rows.body)
    costs = {cost: number for number, cost in enumerate(dict.fromkeys([FREE, *rows.costs.values()]))}
    cost_of = np.array([costs[rows.costs.get(n, FREE)] for n in range(count)], np.int64)
    is_free = np.array([cost.provenance == "free" for cost in costs], np.bool_)[cost_of]
    is_free[[n for n in virtual.deferred if not virtual.calls_functions(n)]] = False
    duty = np.where(is_free, Duty.FREE, virtual.duty).astype(np.uint8)
    routes = {n: route for n, route in virtual.routes.items() if n in rows.costs}
    duty[list(routes)] = Duty.TRANSFER
    shapes: dict[Shapes, int] = {}
    never = [(None,) * len(kind.output_types) for kind in graph.kinds]  # of nodes that did not run
    of_nodes = (rows.shapes.get(n) or never[kind] for n, kind in enumerate(graph.kind_of.tolist()))
    shape_of = np.array([shapes.setdefault(of_node, len(shapes)) for of_node in of_nodes], np.int32)
    return RanBody(
        graph=graph,
        device=np.array(virtual.device, np.int64),
        duty=duty,
        costs=list(costs),
        cost_of=cost_of,
        routes=routes,
        copied_bytes={n: rows.sizes[n] for n in routes},
        distinct=list(shapes),
        shape_of=shape_of,
    )


def _memory(played: OwnEntries, ran: RanGraph, cluster: Cluster) -> MemoryUse:
    """The memory of a step."""
    bodies = [activation.body for activation in played.activations]
    return memory_of(played, bodies[0] if len(bodies) == 1 else shapes_of_rows(ran.graph(), bodies), cluster)
