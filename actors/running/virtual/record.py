"""What a step on simulated hardware has done, and its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....devices.timing.link_use import LinkLoad, LinkUse
from ....devices.timing.playing.holding import memory_of
from ....devices.timing.playing.ran import Entries, RanSteps, ran_steps
from ....devices.timing.playing.recording import events_of
from ....devices.timing.playing.replaying import longest_chain_ns
from ....devices.timing.session_timeline import StepSpan
from ....devices.timing.simulate import spec_assumptions, spec_warnings
from ....devices.timing.timeline import Timeline
from ....graph.arrays import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....devices.timing.playing.activation import Activation
    from ....devices.timing.playing.player import Player
    from ....devices.timing.session_timeline import StepOutcome
    from .clock import VirtualClock


class StepRecord:
    """The activations of one step, and which entries of the log are of its time."""

    def __init__(self, clock: VirtualClock, number: int, player: Player) -> None:
        """Step `number` of the session starts now."""
        self.number = number
        self.state: StepOutcome = "running"
        self.shared = player.shared
        self.past_ns = clock.now_ns - self.shared.engine.now()
        """when the hardware began, in the time of the session"""
        self._player = player
        self._cluster = clock.cluster
        self._start_ns = self._end_ns = self.shared.engine.now()
        self._first_entry = self.end_entry = len(self.shared.log)

    @property
    def activations(self) -> Sequence[Activation]:
        """The runs of bodies of the step, in order of their rows."""
        return self._player.activations

    def close(self, state: StepOutcome) -> None:
        """The step has ended, once: later entries of the log are what it has left on the hardware."""
        if self.state == "running":
            self.state, self.end_entry, self._end_ns = state, len(self.shared.log), self.shared.engine.now()

    @property
    def span(self) -> StepSpan:
        """When the step was under way, in the time of the session."""
        end_ns = None if self.state == "running" else self.past_ns + self._end_ns
        return StepSpan(self.number, self.past_ns + self._start_ns, end_ns, self.state)

    def ran(self) -> RanSteps:
        """What the step has done, from 0."""
        return ran_steps(self.activations, Entries(self.shared.log, self._first_entry, self.end_entry, self._start_ns))

    def timeline(self) -> Timeline:
        """The timeline of the step, from 0. InvalidArgumentError for one that took no simulated time."""
        ran, cluster = self.ran(), self._cluster
        memory = memory_of(ran.log, ran.activations, cluster)
        numbers = distinct(np.concatenate([each.body.device for each in ran.activations])).tolist()
        used = [cluster.names[number] for number in numbers]
        return Timeline(
            events_of(ran, cluster.names),
            warnings=spec_warnings(used, cluster) + memory.warnings(),
            assumed=spec_assumptions(used, cluster),
            memory=memory,
            dependency_bound_ns=lambda: longest_chain_ns(ran.activations, cluster),
            cluster=cluster,
            link_use=LinkUse(cluster.topology.links, self._link_loads),
        )

    def longest_chain_ns(self) -> int:
        """The longest chain of durations of the step."""
        return longest_chain_ns(self.ran().activations, self._cluster)

    def _link_loads(self, link: str) -> list[LinkLoad]:
        """What a link carried during the step, for whatever step that was under way."""
        start, end = self._start_ns, self._end_ns
        loads = [(max(a, start), min(b, end), load) for a, b, load in self.shared.engine.network.loads(link)]
        return [(a - start, b - start, load) for a, b, load in loads if a < b]
