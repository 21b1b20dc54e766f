"""The state of one step of a session, over all its parts, and how it ends.

    RUNNING --all parts have ended--> DONE
       |
       `--fail(error)--> STOPPING --no worker thread works for the step--> FAILED

`fail` aborts the rendezvous and cancels the deferred nodes; actors drop the remaining messages of the step when they
reach them. Only the first error counts. `wait` returns in DONE and raises in FAILED, never in between: cancelling a
task in `wait` fails the step first, and a KeyboardInterrupt that a kernel raised is raised by `wait` unchanged.

Outside of worker threads, actors work for a step only in code that never awaits. Therefore, when `wait` ends, nothing
runs for the step, its rendezvous has no waiting receive, what kernels kept for it (`state`) is forgotten, and its
tensors are freed with the caller's references.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import outcome
import trio

from ...devices.kernels.step_state import StepState
from ...errors import CancelledError, PartitaError

if TYPE_CHECKING:
    from ...rendezvous import Rendezvous

T = TypeVar("T")


class Cancellable(Protocol):
    """A deferred node that runs in a step."""

    @property
    def is_of_nodes(self) -> bool:
        """Whether it ends when other nodes of the step have run."""

    def cancel(self) -> None:
        """Called when the step fails."""


class Step:
    """One step. `number` counts the steps of a session from 1; `calls` are the deferred nodes that run.

    `call_starts` has, for each actor, the functions that start parts of calls (see `messages.Begin`); `part_starts` has
    the starts of parts of the step itself, which take turns (see `ActorGroup`). With `awaits_host` its host may still
    send tensors.
    """

    __slots__ = (
        "_in_threads",
        "_interruption",
        "_owns_state",
        "_raise_cancel",
        "_state",
        "_stuck",
        "_task",
        "_unfinished",
        "awaits_host",
        "call_starts",
        "calls",
        "error",
        "number",
        "part_starts",
        "rendezvous",
        "shares",
    )

    def __init__(
        self, number: int, rendezvous: Rendezvous, state: StepState | None = None, shares: Sequence[Step] = ()
    ) -> None:
        """`state` is what kernels keep, if other steps share it; who makes it ends it.

        `shares` are the shares of all workers in a step that several have.
        """
        self.number = number
        self.rendezvous = rendezvous
        self.error: PartitaError | None = None
        self._interruption: BaseException | None = None
        self.calls: set[Cancellable] = set()
        self.awaits_host = False
        self.shares = shares
        self._stuck: dict[Cancellable, Callable[[], None]] = {}
        self.call_starts: dict[object, list[Callable[[], None]]] = {}
        self.part_starts: deque[Iterator[None]] = deque()
        self._owns_state = state is None
        self._state = StepState() if state is None else state
        self._unfinished = 0
        self._in_threads = 0
        self._task: trio.lowlevel.Task | None = None
        self._raise_cancel: Callable[[], object] | None = None

    def begin(self, num_parts: int) -> None:
        """Sets how many parts have to call `part_ended`.

        The step does not refer to its parts, which refer to it: the cycle would keep every tensor of the step alive
        until the garbage collector runs.
        """
        self._unfinished = num_parts

    def part_ended(self, _part: object) -> None:
        """Called by each part when all its segments have run."""
        self._unfinished -= 1
        if not self._unfinished and self._owns_state:
            self._state.end()
        self._wake_if_settled()

    def state(self, key: Hashable, make: Callable[[], T]) -> T:
        """As `devices.kernels.step_state.KernelStep`."""
        return self._state.get(key, make)

    def fail(self, error: PartitaError) -> None:
        """Stops the step with this error; later errors are dropped."""
        if self.error is None and self._unfinished:
            self.error = error.located(step=self.number)
            try:
                self.rendezvous.abort(self.error)
            finally:  # `abort` calls all callbacks before it raises the error of one
                calls, self.calls = self.calls, set()
                self.call_starts.clear()
                self.part_starts.clear()
                for call in calls:
                    call.cancel()
                if self._owns_state:
                    self._state.end()
                self._wake_if_settled()

    def when_stuck(self, call: Cancellable, callback: Callable[[], None]) -> None:
        """Calls `callback` if the call is open when nothing of the step can go on."""
        self._stuck[call] = callback

    def look_for_deadlock(self) -> bool:
        """Fails a step in which nothing can go on; for a moment in which there is no mail.

        Returns whether a call is open that only the step itself can end.
        """
        shares = self.shares or (self,)
        if all(share._is_stuck() for share in shares):
            for share in shares:
                for callback in [callback for call, callback in share._stuck.items() if call in share.calls]:
                    callback()
        self._stuck = {call: callback for call, callback in self._stuck.items() if call in self.calls}
        return bool(self._stuck)

    def _is_stuck(self) -> bool:
        return not (self.awaits_host or self._in_threads) and all(
            call in self._stuck or call.is_of_nodes for call in self.calls
        )

    def interrupt(self, error: BaseException) -> None:
        """Stops the step for an exception that is not an Exception; `wait` raises it, unless an error came first."""
        if self.error is None:
            self._interruption = error
        self.fail(CancelledError(f"the step was interrupted by {error!r}"))

    def add_note(self, text: str) -> None:
        """Adds a note to the error of the step, if it has one."""
        if self.error is not None:
            self.error.add_note(text)

    def thread_began(self) -> None:
        """A worker thread begins to work for this step, which does not end before `thread_ended`."""
        self._in_threads += 1

    def thread_ended(self) -> None:
        """A worker thread has stopped working for this step."""
        self._in_threads -= 1
        self._wake_if_settled()

    async def wait(self) -> None:
        """Returns in DONE, raises the error in FAILED; awaits nothing if the step is in one of them already."""
        if not self._is_settled():
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._cancel)
        raised = self._forget_error()
        if raised is not None:
            try:
                raise raised
            finally:
                del raised

    def _forget_error(self) -> BaseException | None:
        """What `wait` raises, to which the step refers no more.

        The traceback refers to the frames of callers, which refer to the step: with a reference back the tensors of a
        failed step would wait for the garbage collector.
        """
        raised = self._interruption or self.error
        if raised is not None:
            self._interruption, self.error = None, CancelledError("the step has failed")
        return raised

    def _cancel(self, raise_cancel: Callable[[], object]) -> trio.lowlevel.Abort:
        """The task in `wait` is cancelled: fails the step, and delivers the cancellation once it is settled."""
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
