"""Worker threads, for what would hold the event loop for long: slow kernels, preparation, files.

They are counted by limiters of our own. trio's default one belongs to the host, which may use it up with threads that
wait for a session: a session that needed one of them would wait for ever.

Under a clock that jumps when all tasks wait (trio's `MockClock` with an `autojump_threshold`) no thread is used: the
clock would jump while a task waits for one, and what runs takes no time of such a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeVar

import trio

T = TypeVar("T")
_NUM_THREADS = 2  # of an event loop: more threads that run Python would only take the interpreter from the loop
_HAVE_RUN: set[Callable[..., object]] = set()
_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter | None] = trio.lowlevel.RunVar("limiter of Partita's threads", None)


async def run_in_thread(
    function: Callable[..., T], *arguments: object, limiter: trio.CapacityLimiter | None = None
) -> T:
    """Calls a function in a worker thread and returns its result; raises what it raises.

    Without a limiter that of the event loop counts the thread. A cancellation waits until the function has returned,
    which may call `check_cancelled`.
    """
    if getattr(trio.lowlevel.current_clock(), "autojump_threshold", inf) < inf:
        await trio.lowlevel.checkpoint()
        return function(*arguments)
    return await trio.to_thread.run_sync(function, *arguments, limiter=_of_loop() if limiter is None else limiter)


async def run_first_in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Calls a function that loads modules when the process first calls it: until it has returned once, in a thread.

    It is one that modules define, not a method or a closure, by which the process would know it again.
    """
    if function in _HAVE_RUN:
        return function(*arguments)
    result = await run_in_thread(function, *arguments)
    _HAVE_RUN.add(function)
    return result


def check_cancelled() -> None:
    """Raises trio.Cancelled in a worker thread whose task is cancelled."""
    if not trio.lowlevel.in_trio_run():
        trio.from_thread.check_cancelled()


def _of_loop() -> trio.CapacityLimiter:
    limiter = _limiter.get()
    if limiter is None:
        limiter = trio.CapacityLimiter(_NUM_THREADS)
        _limiter.set(limiter)
    return limiter
