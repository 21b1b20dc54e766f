"""One step over several workers: a `Step` with each of them, which end together.

Flows in: the rendezvous that the workers share, how each of them sees it, plans with their actors. Flows out: what a
`Step` gives: the parts, or the one error that was the first. Always holds: a step that fails on one worker fails on all
with the same error, and `wait` ends when nobody works for it any more on any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from ...errors import PartitaError
from ..running.part import start_parts
from ..running.step import Step

if TYPE_CHECKING:
    from ...rendezvous import Rendezvous, WorkerRendezvous
    from ..plans.plan import Plan
    from ..running.device_actor import DeviceActor
    from ..running.part import Part

View = Callable[["Rendezvous", Callable[[PartitaError], object]], "WorkerRendezvous"]
"""how a worker sees the rendezvous of a step; the function hears when the worker aborts it"""


class WorkerSteps:
    """See the module; what a session needs of a `Step` it has too. `rendezvous` is where the workers meet."""

    def __init__(self, number: int, rendezvous: Rendezvous, views: Mapping[DeviceActor, View]) -> None:
        """`views` are those of the worker that an actor belongs to."""
        self.rendezvous = rendezvous
        self._number = number
        self._views = views
        self._steps: list[Step] = []

    def start(
        self, work: Sequence[tuple[Plan, DeviceActor]], feeds: list[object], *, with_trace: bool = False
    ) -> list[Part]:
        """Starts every plan on its actor and returns the parts, see `start_parts`."""
        shares: dict[View, list[tuple[Plan, DeviceActor]]] = {}
        for plan, actor in work:
            shares.setdefault(self._views[actor], []).append((plan, actor))
        parts: list[Part] = []
        for view, share in shares.items():
            step = Step(self._number, view(self.rendezvous, self.fail))
            self._steps.append(step)
            parts += start_parts(step, share, feeds, with_trace=with_trace)
            if step.error is not None:
                break
        return parts

    def fail(self, error: PartitaError) -> None:
        """Stops the step on all workers; the first error is the one it is remembered for."""
        for step in self._steps:
            step.fail(error)

    async def wait(self) -> None:
        """Returns when the step is done on all workers; raises the first error when nobody works for it any more.

        To be called once.
        """
        try:
            for step in self._steps:
                await step.wait()
        except BaseException:
            with trio.CancelScope(shield=True):
                for step in self._steps:
                    with suppress(PartitaError):
                        await step.wait()
            raise
        finally:
            self._steps.clear()  # they know this object: a circle would hold what is left at the rendezvous


def start_step(
    step: Step | WorkerSteps, work: Sequence[tuple[Plan, DeviceActor]], feeds: list[object], *, with_trace: bool = False
) -> list[Part]:
    """Starts every plan on its actor, of one worker or of several, and returns the parts."""
    if isinstance(step, WorkerSteps):
        return step.start(work, feeds, with_trace=with_trace)
    return start_parts(step, work, feeds, with_trace=with_trace)
