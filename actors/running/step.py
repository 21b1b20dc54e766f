"""One step of a session over several devices: its parts, and how it ends.

Flows in: plans, feeds, a rendezvous, the actors. Flows out: filled slots, or the one error that was the first. Always
holds:

    RUNNING --all parts done--> DONE
       |
       `--fail(error)--> STOPPING --no thread works for the step any more--> FAILED
                         (rendezvous aborted; actors drop what is left of the step when they come to it)

`wait` returns in DONE and raises in FAILED, never earlier; a cancelled wait fails the step first. What is no error of
the step, a KeyboardInterrupt that a kernel raises for one, ends it too, and comes out of `wait` as it is. Outside of
worker threads actors work for a step only in code that never awaits. So when `wait` ends nobody works for the step, no
waiter is left in its rendezvous, and its tensors are garbage as soon as the caller lets go of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import outcome
import trio

from ...errors import CancelledError, PartitaError

if TYPE_CHECKING:
    from ...rendezvous import Rendezvous


class Cancellable(Protocol):
    """What is under way in a step and has to hear when it ends."""

    def cancel(self) -> None:
        """The step has ended."""


class Step:
    """See the module. `number` counts the steps of a session from 1."""

    __slots__ = (
        "_in_threads",
        "_interruption",
        "_raise_cancel",
        "_task",
        "_unfinished",
        "calls",
        "error",
        "number",
        "rendezvous",
        "waiting",
    )

    def __init__(self, number: int, rendezvous: Rendezvous) -> None:
        self.number = number
        self.rendezvous = rendezvous
        self.error: PartitaError | None = None
        self._interruption: BaseException | None = None
        self.calls: set[Cancellable] = set()
        self.waiting: dict[object, list[Callable[[], None]]] = {}  # what begins parts of calls, by who will do it
        self._unfinished = 0
        self._in_threads = 0
        self._task: trio.lowlevel.Task | None = None
        self._raise_cancel: Callable[[], object] | None = None

    def begin(self, num_parts: int) -> None:
        """The step has so many parts, each of which will tell `part_ended`.

        It does not keep its parts, which know it: such a circle would hold every tensor of the step until the garbage
        collector comes by, gigabytes later.
        """
        self._unfinished = num_parts

    def part_ended(self, _part: object) -> None:
        """One of the parts has run to its end."""
        self._unfinished -= 1
        self._wake_if_settled()

    def fail(self, error: PartitaError) -> None:
        """Stops the step; the first error is the one it is remembered for."""
        if self.error is None and self._unfinished:
            self.error = error.located(step=self.number)
            try:
                self.rendezvous.abort(self.error)
            finally:  # a rendezvous tells of callbacks of others that raised, when it has called all
                calls, self.calls = self.calls, set()
                self.waiting.clear()
                for call in calls:
                    call.cancel()
                self._wake_if_settled()

    def interrupt(self, error: BaseException) -> None:
        """Stops the step for something that is not its error; `wait` raises that, unless an error was first."""
        if self.error is None:
            self._interruption = error
        self.fail(CancelledError(f"the step was interrupted by {error!r}"))

    def add_note(self, text: str) -> None:
        """Adds a note to the error of the step."""
        if self.error is not None:
            self.error.add_note(text)

    def entered(self) -> None:
        """A worker thread begins to work for this step."""
        self._in_threads += 1

    def left(self) -> None:
        """A worker thread has stopped working for this step."""
        self._in_threads -= 1
        self._wake_if_settled()

    async def wait(self) -> None:
        """Returns when the step is done and raises its error when it has failed; yields only while it is neither."""
        if not self._is_settled():
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._cancel)
        if self._interruption is not None:
            raise self._interruption
        if self.error is not None:
            raise self.error

    def _cancel(self, raise_cancel: Callable[[], object]) -> trio.lowlevel.Abort:
        """The waiting task is cancelled: stop the step, and let the cancellation go on once it is settled."""
        task, self._task = self._task, None
        self.fail(CancelledError("the task that ran the step was cancelled"))
        if self._is_settled():
            return trio.lowlevel.Abort.SUCCEEDED
        self._task, self._raise_cancel = task, raise_cancel
        return trio.lowlevel.Abort.FAILED

    def _is_settled(self) -> bool:
        return not self._in_threads and (not self._unfinished or self.error is not None)

    def _wake_if_settled(self) -> None:
        if self._task is not None and self._is_settled():
            task, self._task = self._task, None
            cancelled = self._raise_cancel
            trio.lowlevel.reschedule(task, outcome.Value(None) if cancelled is None else outcome.capture(cancelled))
