"""Steps of the workers of one process: one over several workers is a `Step` on each of them.

If a step fails on one worker, it fails on all with the same error. `wait` ends when no actor works for the step any
more, on any worker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...devices.kernels.step_state import StepState
from ...errors import PartitaError
from ...rendezvous import TracedRendezvous
from ..plans.tracing import TraceScope
from ..running.part import start_parts
from ..running.step import Step
from ..running.traced.parts import TracedPart
from .session_traces import statistics_of

if TYPE_CHECKING:
    from ...graph import StepStats
    from ...rendezvous import Outcome, Rendezvous, WorkerRendezvous
    from ..plans.plan import Plan
    from ..running.actor_group import ActorGroup
    from ..running.device_actor import DeviceActor
    from ..running.part import Part

View = Callable[["Rendezvous", Callable[[PartitaError], object]], "WorkerRendezvous"]
"""makes the rendezvous of one worker from the one that all workers share; its argument is called with the error when
the worker aborts the rendezvous"""


class WorkerSteps:
    """A step over several workers, with the methods of `Step` that sessions use. The workers share `rendezvous`,
    and what kernels keep for the step."""

    def __init__(self, number: int, rendezvous: Rendezvous, views: Mapping[DeviceActor, View]) -> None:
        """`views` maps each actor to the view of its worker."""
        self.rendezvous = rendezvous
        self.awaits_host = False
        self._number = number
        self._views = views
        self._state = StepState()
        self._steps: list[Step] = []

    def start(
        self, work: Sequence[tuple[Plan, DeviceActor]], feeds: list[object], *, with_trace: bool = False
    ) -> list[Part]:
        """Starts each worker's plans as a `Step` of that worker; stops starting when one of them fails."""
        shares: dict[View, list[tuple[Plan, DeviceActor]]] = {}
        for plan, actor in work:
            shares.setdefault(self._views[actor], []).append((plan, actor))
        parts: list[Part] = []
        for view, share in shares.items():
            step = Step(self._number, view(self.rendezvous, self.fail), self._state, self._steps)
            step.awaits_host = self.awaits_host
            self._steps.append(step)
            parts += _started(step, share, feeds, with_trace=with_trace)
            if step.error is not None:
                break
        return parts

    def fail(self, error: PartitaError) -> None:
        """Stops the step on all workers; `wait` raises the first error that it was stopped with."""
        for step in self._steps:
            step.fail(error)

    async def wait(self) -> None:
        """Returns when the step is done on all workers; raises its error when no actor works for it any more.

        May be called once.
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
            # They refer to `self.fail` and to each other: without this the reference cycle would keep the tensors that
            # are left at the rendezvous until the garbage collector runs.
            self._steps.clear()
            self._state.end()


class RequestStep:
    """One step of a request: the `SessionStep` of workers in this process. It keeps the parts alive, as `step` does
    not."""

    __slots__ = ("_actor_group", "_step", "_with_trace", "_work", "parts", "rendezvous")

    def __init__(
        self,
        step: Step | WorkerSteps,
        work: Sequence[tuple[Plan, DeviceActor]],
        actor_group: ActorGroup,
        with_trace: bool,
    ) -> None:
        """`work` are the plans of the step with their actors; with `with_trace` they have clocks."""
        self.rendezvous = step.rendezvous
        self._step = step
        self._work = work
        self._actor_group = actor_group
        self._with_trace = with_trace
        self.parts: list[Part] = []

    def start(
        self,
        fed: list[Any],
        messages: Iterable[tuple[str, Any]] = (),
        fetches: Iterable[str] = (),
        *,
        awaits_host: bool = False,
    ) -> None:
        """As `SessionStep.start`; does the work that is ready before it returns.

        If the rendezvous was aborted before, sending raises its error and nothing is started.
        """
        step = self._step
        step.awaits_host = awaits_host
        with np.errstate(all="ignore"):
            for key, value in messages:
                self.rendezvous.send(key, value)
            if isinstance(step, WorkerSteps):
                self.parts = step.start(self._work, fed, with_trace=self._with_trace)
            elif self._with_trace:
                self.parts = start_parts(step, self._work, fed, TracedPart, TraceScope([]))
            else:
                self.parts = start_parts(step, self._work, fed)
            self._actor_group.serve_mailboxes()

    def fail(self, error: PartitaError) -> None:
        """As `StepUnderWay.fail`."""
        self._step.fail(error)

    def wait(self) -> Awaitable[None]:
        """As `SessionStep.wait`."""
        return self._step.wait()

    def received(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """As `SessionStep.received`."""
        outcomes: dict[str, Outcome] = {}
        for key in dict.fromkeys(keys):
            self.rendezvous.recv_callback(key, partial(outcomes.__setitem__, key))
        return outcomes

    def results(self) -> dict[int, Any]:
        """As `SessionStep.results`."""
        return {result.index: part.slots[result.slot] for part in self.parts for result in part.plan.results}

    def statistics(self) -> StepStats:
        """As `SessionStep.statistics`."""
        assert isinstance(self.rendezvous, TracedRendezvous)  # from `Workers.new_step(with_trace=True)`
        return statistics_of(self.parts, self.rendezvous)

    def waiting(self) -> list[str]:
        """As `SessionStep.waiting`."""
        return self.rendezvous.waiting()


def _started(
    step: Step, work: Sequence[tuple[Plan, DeviceActor]], feeds: list[object], *, with_trace: bool
) -> list[Part]:
    return start_parts(step, work, feeds, TracedPart, TraceScope([])) if with_trace else start_parts(step, work, feeds)
