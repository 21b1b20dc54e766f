"""Fails tests that hang, and moves virtual time when a test has nothing else to do.

When the event loop of a test would sleep although nothing can wake it, a `JumpingClock` jumps to the next deadline;
without a deadline the test fails with `Hung`. Nothing can wake the loop when no task can run, no other thread has
posted a callback, and no task waits for a worker thread, a file descriptor or an idle loop. The speed of the machine
does not matter. A test that waits for other processes may wait for two minutes.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Iterator
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakSet

import trio
from trio.lowlevel import Task
from trio.testing import wait_all_tasks_blocked

from partita.actors.sessions.processes.bridge import LoopBridge

TRIO = str(Path(trio.__file__).parent) + os.sep
# Functions of trio in which a task waits that something outside the loop, or the idle loop, will wake.
THREADS = "_threads.py"
OUTSIDE = (THREADS, "_subprocess.py", "_socket.py", "_io_epoll.py", "_io_kqueue.py", "_io_windows.py")
LISTENER = "<TrioToken.run_sync_soon task>"
IDLE = wait_all_tasks_blocked.__name__
PATIENCE_S = 120
CUSHION_S = 0.001  # time between two checks of the threads


class Hung(Exception):
    """Every task of a test waits, and nothing can wake any of them."""


class JumpingClock(trio.abc.Clock):
    """Virtual time, which stands still while a task or a thread can run; used with `never_hangs`.

    trio's own jumping clock jumps when the loop was idle for some time, and a loop is also idle while a thread runs.
    """

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None:
        """Time begins at 0."""

    def current_time(self) -> float:
        """Seconds since the start."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """The longest sleep of the loop in real seconds: unlimited, or 0 after the deadline."""
        return 0.0 if deadline <= self._now else inf

    def jump(self, seconds: float) -> None:
        """Lets time pass."""
        self._now += seconds


class _Alarm(trio.abc.Instrument):
    """Moves the clock, or cancels the test, when its loop is about to sleep and nothing can wake it."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope
        self._token = trio.lowlevel.current_trio_token()
        self.waiting: list[str] = []  # tasks and lines, after the test was cancelled

    def before_io_wait(self, timeout: float) -> None:
        """The loop has run all tasks that could run."""
        loop = trio.lowlevel.current_statistics()
        clock, seconds = trio.lowlevel.current_clock(), loop.seconds_to_next_deadline
        if self.waiting or loop.tasks_runnable or loop.run_sync_soon_queue_size or seconds <= 0:
            return
        if seconds < inf and not isinstance(clock, JumpingClock):
            return
        tasks = list(_below(trio.lowlevel.current_root_task()))
        if any(_can_be_woken(task) for task in tasks):
            return
        if _hears_of_processes(self._token):
            if not isinstance(clock, JumpingClock):
                self._token.run_sync_soon(self._be_patient)  # the loop may not be changed from here
            return
        if isinstance(clock, JumpingClock) and seconds < inf:
            self._token.run_sync_soon(clock.jump, seconds)
        else:
            self.waiting = [_whereabouts(task) for task in tasks]
            self._token.run_sync_soon(self._scope.cancel)

    def _be_patient(self) -> None:
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + PATIENCE_S)


def _below(task: Task | None) -> Iterator[Task]:
    """The tasks below the root, but not the one with which trio listens to other threads."""
    for nursery in task.child_nurseries if task else ():
        for child in nursery.child_tasks:
            if child.name != LISTENER:
                yield child
                yield from _below(child)


def _can_be_woken(task: Task) -> bool:
    """Whether the task waits for a thread, for a file descriptor, or for the loop to be idle."""
    codes = [frame.f_code for frame, _ in task.iter_await_frames() if _in_trio(frame)]
    return any(Path(code.co_filename).name in OUTSIDE or code.co_name == IDLE for code in codes)


class _NotedBridges(WeakSet[LoopBridge]):
    """The bridges that there are: asyncio tells trio over them of messages of other processes."""

    def __init__(self) -> None:
        super().__init__()
        make = LoopBridge.__init__

        def noted(bridge: LoopBridge, loop: asyncio.AbstractEventLoop) -> None:
            make(bridge, loop)
            self.add(bridge)

        LoopBridge.__init__ = noted  # type: ignore[assignment, method-assign]  # in all tests


_BRIDGES = _NotedBridges()


def _hears_of_processes(token: trio.lowlevel.TrioToken) -> bool:
    """Whether a message of another process can wake the loop."""
    return any(bridge._token is token and bridge.loop.is_running() for bridge in _BRIDGES)


async def all_waiting() -> None:
    """Waits until every other task waits, and no thread runs for one of them.

    A kernel that took long on a busy machine runs in a thread the next time, and trio's `wait_all_tasks_blocked` does
    not wait for threads.
    """
    await wait_all_tasks_blocked()
    while any(_waits_for_thread(task) for task in _below(trio.lowlevel.current_root_task())):
        await wait_all_tasks_blocked(CUSHION_S)


def _waits_for_thread(task: Task) -> bool:
    return any(_in_trio(frame) and frame.f_code.co_filename.endswith(THREADS) for frame, _ in task.iter_await_frames())


def _whereabouts(task: Task) -> str:
    """The task and the innermost line of it that is not in trio."""
    lines = [f"{Path(f.f_code.co_filename).name}:{line}" for f, line in task.iter_await_frames() if not _in_trio(f)]
    return f"{task.name} at {lines[-1]}" if lines else task.name


def _in_trio(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(TRIO)


def _hung(alarm: _Alarm) -> Hung:
    return Hung(f"nothing will ever wake {'; '.join(sorted(alarm.waiting))}")


def never_hangs(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The same test, which raises `Hung`, saying which tasks wait and where, instead of waiting for ever."""
    if hasattr(test, "_never_hangs"):  # the tests of a parametrised law share one function
        return test

    @functools.wraps(test)
    async def watched(**arguments: Any) -> None:  # Any: the fixtures of the test
        with trio.CancelScope() as scope:
            alarm = _Alarm(scope)
            trio.lowlevel.add_instrument(alarm)
            try:
                await test(**arguments)
            except Exception as error:
                if alarm.waiting:
                    raise _hung(alarm) from error
                raise
            finally:
                trio.lowlevel.remove_instrument(alarm)
        if alarm.waiting:
            raise _hung(alarm)
        if scope.cancelled_caught:
            raise Hung(f"no process has answered for {PATIENCE_S} s")

    watched._never_hangs = True  # type: ignore[attr-defined]  # a mark, read above
    return watched
