"""The actor of one device: a task that lives as long as the session and runs the segments posted to it.

Flows in: messages, posted by whoever starts a step and by the rendezvous callbacks of other actors. Flows out: values
into slots, tensors into the rendezvous of each step, the news that a segment is finished or has failed. Always holds:
one segment at a time; segments in the order of posting; the actor parks only when its mailbox is empty; a step's
error ends that step and never the actor.

    PARKED --post--> WORKING --mailbox empty--> PARKED
                        `--Shutdown--> ended
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import trio

from ..errors import InternalError, PartitaError
from .executor import Pacer, run_segment
from .messages import Message, RunSegment, Shutdown

if TYPE_CHECKING:
    from .binding import Binder


class DeviceActor:
    """See the module. `binder` makes the kernels of the device and holds its state."""

    __slots__ = ("_mailbox", "_parked", "binder", "name", "pacer")

    def __init__(self, name: str, binder: Binder, pacer: Pacer) -> None:
        self.name = name
        self.binder = binder
        self.pacer = pacer
        self._mailbox: deque[Message] = deque()
        self._parked: trio.lowlevel.Task | None = None

    def post(self, message: Message) -> None:
        """Puts a message into the mailbox and wakes the actor if it is parked."""
        self._mailbox.append(message)
        if self._parked is not None:
            task, self._parked = self._parked, None
            trio.lowlevel.reschedule(task)

    async def run(self) -> None:
        """Works until told to shut down. Shielded: an actor is ended by its session, after the steps are settled."""
        with trio.CancelScope(shield=True), np.errstate(all="ignore"):
            while True:
                while self._mailbox:
                    message = self._mailbox.popleft()
                    if isinstance(message, Shutdown):
                        return
                    await self._run_segment(message)
                await self._park()

    async def _park(self) -> None:
        self._parked = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._refuse_to_wake)
        self.pacer.since = self.pacer.clock()

    def _refuse_to_wake(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        """Actors are shielded, so nobody cancels a parked one; the post that wakes it will come."""
        return trio.lowlevel.Abort.FAILED

    async def _run_segment(self, message: RunSegment) -> None:
        """Runs one segment, unless its step has failed meanwhile."""
        part, number = message
        step = part.step
        if step.error is not None:
            return
        step.entered()
        try:
            await run_segment(part.plan, part.plan.segments[number], part.slots, self.pacer, step)
            if step.error is None:
                part.finished(number)
        except PartitaError as error:
            step.fail(error)
        except Exception as error:  # noqa: BLE001 - a bug in here must end the step, not the session
            step.fail(_bug(error, self.name))
        finally:
            step.left()


def _bug(error: Exception, device: str) -> InternalError:
    """The error of a step that ran into a mistake of ours."""
    wrapped = InternalError(f"the actor failed with {type(error).__name__}: {error}; please report it", device=device)
    wrapped.__cause__ = error
    return wrapped
