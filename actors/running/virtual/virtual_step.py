"""A step on simulated hardware: it runs the graph of a request, and remembers what its timeline is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .graph_run import GraphRun
from .record import StepRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..device_actor import DeviceActor
    from ..step import Step
    from .body import VirtualBody
    from .clock import VirtualClock


class VirtualStep:
    """One step: it starts at the present time of the clock."""

    def __init__(self, step: Step, clock: VirtualClock) -> None:
        self.step = step
        self.clock = clock
        self.record = StepRecord(clock, step.number)
        clock.keep(self.record)

    async def run(
        self, body: VirtualBody, actor: DeviceActor, feeds: Sequence[object], *, keeps_last: bool = False
    ) -> GraphRun:
        """Runs a graph to its end and returns its run, which has the results. Raises the error of the step."""
        graph_run = GraphRun(self, body, actor, feeds, self._graph_ended, keeps_last=keeps_last)
        self.step.begin(1)
        self.clock.step_began(self)
        try:
            graph_run.start()
            await self.step.wait()
        finally:
            self.record.close("failed")  # unless its graph has ended
            self.clock.step_ended(self)
        return graph_run

    def _graph_ended(self, graph_run: GraphRun) -> None:
        self.record.close("done")
        self.step.part_ended(graph_run)
        self.clock.give_way()
