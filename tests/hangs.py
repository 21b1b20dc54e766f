"""Ends a test that waits for ever: every task is blocked, and nothing is left that could wake one of them.

Flows in: an async test. Flows out: the same test, which fails with `Hung` at the moment its loop would go to sleep for
good. Always holds: no clock decides. A loop hangs when no task can run, no deadline is set, no other thread has posted
anything, and no task waits for a worker thread, a file descriptor or an idle loop. How busy the
machine is plays no part.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable, Iterator
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any

import trio
import trio.testing
from trio.lowlevel import Task

TRIO = str(Path(trio.__file__).parent) + os.sep
# Where a task stands in trio when something outside the loop, or the idle loop itself, is going to wake it.
OUTSIDE = ("_threads.py", "_subprocess.py", "_socket.py", "_io_epoll.py", "_io_kqueue.py", "_io_windows.py")
LISTENER = "<TrioToken.run_sync_soon task>"
IDLE = trio.testing.wait_all_tasks_blocked.__name__


class Hung(Exception):
    """Every task of a test waits, and none of them will ever go on."""


class _Alarm(trio.abc.Instrument):
    """Cancels the test when its loop is about to sleep for ever."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope
        self._token = trio.lowlevel.current_trio_token()
        self.waiting: list[str] = []  # which tasks, and where, once it has rung

    def before_io_wait(self, timeout: float) -> None:
        """The loop has run all tasks that could run."""
        loop = trio.lowlevel.current_statistics()
        if self.waiting or loop.tasks_runnable or loop.run_sync_soon_queue_size or loop.seconds_to_next_deadline < inf:
            return
        tasks = list(_below(trio.lowlevel.current_root_task()))
        if not any(_can_be_woken(task) for task in tasks):
            self.waiting = [_whereabouts(task) for task in tasks]
            self._token.run_sync_soon(self._scope.cancel)  # the loop may not be changed from here


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


def _whereabouts(task: Task) -> str:
    """The task and the innermost line of it that is not in trio."""
    lines = [f"{Path(f.f_code.co_filename).name}:{line}" for f, line in task.iter_await_frames() if not _in_trio(f)]
    return f"{task.name} at {lines[-1]}" if lines else task.name


def _in_trio(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(TRIO)


def never_hangs(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The same test, which raises `Hung`, saying which tasks wait and where, instead of waiting for ever."""
    if hasattr(test, "_never_hangs"):  # a law with parameters is one function in several tests
        return test

    @functools.wraps(test)
    async def watched(**arguments: Any) -> None:  # Any: the fixtures of the test
        with trio.CancelScope() as scope:
            alarm = _Alarm(scope)
            trio.lowlevel.add_instrument(alarm)
            try:
                await test(**arguments)
            finally:
                trio.lowlevel.remove_instrument(alarm)
        if alarm.waiting:
            raise Hung(f"nothing will ever wake {'; '.join(sorted(alarm.waiting))}")

    watched._never_hangs = True  # type: ignore[attr-defined]  # a mark, found above
    return watched
