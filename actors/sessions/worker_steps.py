"""One step over several workers, as a `Step` on each of them, and how steps of both kinds are started.

If the step fails on one worker, it fails on all with the same error. `wait` ends when no actor works for the step any
more, on any worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import trio

from ...devices.kernels.step_state import StepState
from ...errors import PartitaError
from ..plans.tracing import TraceScope
from ..running.part import start_parts
from ..running.step import Step
from ..running.traced.parts import TracedPart

if TYPE_CHECKING:
    from ...rendezvous import Rendezvous, WorkerRendezvous
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


def start_step(
    step: Step | WorkerSteps,
    work: Sequence[tuple[Plan, DeviceActor]],
    feeds: list[object],
    actor_group: ActorGroup,
    *,
    messages: Iterable[tuple[str, object]] = (),
    awaits_host: bool = False,
    with_trace: bool = False,
) -> list[Part]:
    """Sends `messages`, starts every plan on its actor, does the work that is ready, and returns the parts of the step.

    `feeds` are the values of the call frame; `messages` are tensors by key. If the rendezvous was aborted before,
    sending raises its error and nothing is started. With `awaits_host` the caller will send more.
    """
    step.awaits_host = awaits_host
    with np.errstate(all="ignore"):
        for key, value in messages:
            step.rendezvous.send(key, value)
        if isinstance(step, WorkerSteps):
            parts = step.start(work, feeds, with_trace=with_trace)
        else:
            parts = _started(step, work, feeds, with_trace=with_trace)
        actor_group.serve_mailboxes()
    return parts


def _started(
    step: Step, work: Sequence[tuple[Plan, DeviceActor]], feeds: list[object], *, with_trace: bool
) -> list[Part]:
    return start_parts(step, work, feeds, TracedPart, TraceScope([])) if with_trace else start_parts(step, work, feeds)
