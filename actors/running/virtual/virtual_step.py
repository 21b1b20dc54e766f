"""A step on simulated hardware: a player plays the graph of a request, and asks its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....devices.timing.playing.activation import Activation, Place, PlayedRun
from ....devices.timing.playing.player import Player
from ..tokens.results import LiveResults
from .graph_run import GraphRun
from .kernel_oracle import KernelOracle
from .record import StepRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..device_actor import DeviceActor
    from ..step import Step
    from .body import VirtualBody
    from .clock import VirtualClock


class VirtualStep(PlayedRun):
    """One step: it starts at the present time of the clock."""

    def __init__(self, step: Step, clock: VirtualClock) -> None:
        self.step = step
        self.clock = clock
        self._graph_run: GraphRun
        oracle = self._oracle = KernelOracle(step, clock)
        self._player = oracle.player = Player(clock.shared, oracle, nodes=oracle)
        self.record = StepRecord(clock, step.number, self._player)
        clock.keep(self.record)

    async def run(
        self, body: VirtualBody, actor: DeviceActor, feeds: Sequence[object], *, keeps_last: bool = False
    ) -> GraphRun:
        """Runs a graph to its end and returns its run, which has the results. Raises the error of the step.

        With `keeps_last` a fetch in a loop has its last live value, as in a callable.
        """
        graph_run = self._graph_run = GraphRun(self._oracle, body, actor, feeds, results=LiveResults(keeps_last))
        self.step.begin(1)
        self.clock.step_began(self)
        try:
            self._player.begin(body.bodies.body(0), Place(body.bodies), self, -1)
            self.clock.post(self._player)
            await self.step.wait()
        finally:
            self.record.close("failed")  # unless its graph has ended
            self._oracle.close()
            del self._graph_run  # its feeds would be kept by the simulated hardware, which only the collector frees
            self.clock.step_ended(self)
        return graph_run

    def began(self, activation: Activation) -> None:
        """The graph of the request begins."""
        self._oracle.runs[activation] = self._graph_run

    def ended(self, activation: Activation, _cause: int) -> None:
        """All nodes that can run have."""
        self.record.close("done")
        self.step.part_ended(activation)
        self.clock.give_way()
