"""What a step on simulated hardware has done, and its timeline.

While the step runs only facts of single rows are kept: costs, shapes of outputs, bytes received. When somebody asks for
the timeline, they become the activations that the player of a simulation has: one for every run of a graph, and one for
every further iteration of a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....devices.timing.playing.holding import memory_of
from ....devices.timing.playing.played_graph import shapes_of_rows
from ....devices.timing.playing.recording import events_of
from ....devices.timing.session_timeline import StepSpan
from ....devices.timing.simulate import spec_assumptions, spec_warnings
from ....devices.timing.timeline import LinkLoad, Timeline
from ...plans.instructions import DEAD
from .body import dims_of
from .bound import bound_ns
from .ran_graph import RanGraph
from .ran_rows import Entries, OwnEntries, activations_of, own_log
from .rows import Called, Rows, RunOfCall, Turn

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ....devices.timing.costs.source import OpCost
    from ....devices.timing.memory.use import MemoryUse
    from ....devices.timing.session_timeline import StepOutcome
    from .body import VirtualBody
    from .clock import VirtualClock


class StepRecord:
    """The rows of one step."""

    def __init__(self, clock: VirtualClock, number: int) -> None:
        """Step `number` of the session starts now."""
        self.number = number
        self.state: StepOutcome = "running"
        self.engine = clock.engine
        self.past_ns = clock.now_ns - clock.engine.now()
        """when the hardware began, in the time of the session"""
        self._cluster = clock.cluster
        self._start_ns = self._end_ns = clock.engine.now()
        self._first_entry = self.end_entry = len(clock.engine.log)
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

    def close(self, state: StepOutcome) -> None:
        """The step has ended, once: later entries of the log are what it has left on the hardware."""
        if self.state == "running":
            self.state, self.end_entry, self._end_ns = state, len(self.engine.log), self.engine.now()

    @property
    def rows(self) -> list[Rows]:
        """The rows of the step, in order."""
        return list(self._rows.values())

    @property
    def span(self) -> StepSpan:
        """When the step was under way, in the time of the session."""
        end_ns = None if self.state == "running" else self.past_ns + self._end_ns
        return StepSpan(self.number, self.past_ns + self._start_ns, end_ns, self.state)

    def timeline(self) -> Timeline:
        """The timeline of the step, from 0. InvalidArgumentError for one that took no simulated time."""
        rows, cluster = self.rows, self._cluster
        entries = Entries(self.engine.log, self._first_entry, self.end_entry)
        played = OwnEntries(own_log(rows, entries, self._start_ns), activations_of(rows))
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

    def _link_loads(self, link: str) -> list[LinkLoad]:
        """What a link carried during the step, for whatever step that was under way."""
        start, end = self._start_ns, self._end_ns
        loads = [(max(a, start), min(b, end), load) for a, b, load in self.engine.network.loads(link)]
        return [(a - start, b - start, load) for a, b, load in loads if a < b]


def _memory(played: OwnEntries, ran: RanGraph, cluster: Cluster) -> MemoryUse:
    """The memory of a step."""
    bodies = [activation.body for activation in played.activations]
    return memory_of(played, bodies[0] if len(bodies) == 1 else shapes_of_rows(ran.graph(), bodies), cluster)
