"""trio in one thread and asyncio in another, which call each other in batches.

    thread of trio      bridge.to_loop(link.send, messages)         calls of one tick go over together, at its end
    thread of asyncio   bridge.to_trio(connection.deliver, batch)   calls go over together, however many there are

Waking the other thread is what costs: a write to a pipe, and the other thread's turn at the interpreter's lock. So each
direction wakes once for all calls that wait. The order of calls is kept in each direction. A call to a side that has
ended is dropped. Calls must not raise.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

import outcome
import trio

_Arguments = TypeVarTuple("_Arguments")
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class LoopBridge:
    """Between the trio run of the thread that makes it and `loop`, which runs in another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.tick = 0  # grows when calls of trio have gone over; until then further calls join them
        self._token = trio.lowlevel.current_trio_token()
        self._for_loop: list[Callable[[], object]] = []
        self._for_trio: deque[Callable[[], object]] = deque()

    def to_loop(
        self, function: Callable[_Parameters, object], *arguments: _Parameters.args, **keywords: _Parameters.kwargs
    ) -> None:
        """In trio: calls a function in asyncio's thread after this tick of trio."""
        if not self._for_loop:
            self._token.run_sync_soon(self._hand_over, idempotent=True)
        self._for_loop.append(partial(function, *arguments, **keywords))

    def _hand_over(self) -> None:
        calls, self._for_loop = self._for_loop, []
        self.tick += 1
        try:
            self.loop.call_soon_threadsafe(_call_all, calls)
        except RuntimeError:  # the loop is closed
            pass

    def to_trio(
        self, function: Callable[_Parameters, object], *arguments: _Parameters.args, **keywords: _Parameters.kwargs
    ) -> None:
        """In asyncio: calls a function in trio's thread soon."""
        self._for_trio.append(partial(function, *arguments, **keywords))
        try:
            self._token.run_sync_soon(self._take_over, idempotent=True)
        except trio.RunFinishedError:
            pass

    def _take_over(self) -> None:
        for _ in range(len(self._for_trio)):
            self._for_trio.popleft()()

    async def run(
        self, function: Callable[[*_Arguments], Coroutine[Any, Any, _Result]], *arguments: *_Arguments
    ) -> _Result:  # Any: what a coroutine yields to its loop is between the two
        """In trio: awaits an async function of asyncio there; the result or the error is that of the function.

        If the caller is cancelled the task of asyncio is cancelled, and waited for.
        """
        waiting = trio.lowlevel.current_task()
        running: asyncio.Task[_Result] | None = None
        raise_cancelled: Callable[[], Any] | None = None  # as trio types it

        def start() -> None:
            nonlocal running
            running = self.loop.create_task(function(*arguments))
            running.add_done_callback(lambda task: self.to_trio(finish, outcome.capture(task.result)))

        def finish(result: outcome.Outcome[_Result]) -> None:
            if raise_cancelled is not None and _is_cancelled(result):
                trio.lowlevel.reschedule(waiting, outcome.capture(raise_cancelled))
            else:
                trio.lowlevel.reschedule(waiting, result)

        def abort(raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
            nonlocal raise_cancelled
            raise_cancelled = raise_cancel
            self.to_loop(lambda: running and running.cancel())
            return trio.lowlevel.Abort.FAILED

        self.to_loop(start)
        result: _Result = await trio.lowlevel.wait_task_rescheduled(abort)
        return result


def _call_all(calls: list[Callable[[], object]]) -> None:
    for call in calls:
        call()


def _is_cancelled(result: outcome.Outcome[object]) -> bool:
    return isinstance(result, outcome.Error) and isinstance(result.error, asyncio.CancelledError)
