"""Threads that compute parts of one kernel at the same time: of a large matrix product, or of a convolution.

    parts   [rows 0-63, rows 64-127, rows 128-191, rows 192-255]
    caller   rows 0-63              rows 128-191          waits   returns
    helper             rows 64-127                 rows 192-255

The caller computes parts, too, until none is left, and waits for those that helpers have begun. So it never waits for a
helper that is busy elsewhere, and nothing writes into its arrays after it has returned or raised. How a kernel is cut
must depend on shapes alone. Who computes which part depends on the load of the machine, and must not matter.

Callers and helpers together are as many as there are cores: callers that compute at the same time, for several devices,
have fewer helpers. Helpers are started when they are needed, and end when there was nothing to do for a while. A
process that forks has none in its child.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import numpy as np

from ..cores import num_cores
from .blas_threads import IDLE_S

Argument = TypeVar("Argument")
T = TypeVar("T")


class _Job(Generic[Argument, T]):
    """The parts of one call. `results` has the result of each part that is done.

    A helper stores that it has begun before it looks whether the job is closed, and the caller closes the job before it
    looks who has begun: so it waits for all helpers that do something. Lists instead of counters, as appending is
    atomic, and no lock: the price of a few system calls is that of a small part.
    """

    __slots__ = ("_begun", "_closed", "_ended", "_errors", "_function", "_news", "_todo", "results")

    def __init__(self, function: Callable[[Argument], T], arguments: Sequence[Argument]) -> None:
        self.results: dict[int, T] = {}
        self._function = function
        self._todo = deque(enumerate(arguments))
        self._errors: dict[int, Exception] = {}
        self._begun: list[None] = []
        self._ended: list[None] = []
        self._news: SimpleQueue[None] = SimpleQueue()
        self._closed = False

    def work(self) -> None:
        """Computes parts until none is left or one has failed."""
        while self._todo:
            try:
                number, argument = self._todo.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                self.results[number] = self._function(argument)
            except Exception as error:  # noqa: BLE001 - raised by `close`, in the thread of the caller
                self._errors[number] = error
                self._todo.clear()

    def help(self) -> None:
        """What a helper does."""
        self._begun.append(None)
        if not self._closed:
            self.work()
        self._ended.append(None)
        if self._closed:
            self._news.put(None)

    def close(self) -> None:
        """Waits until no helper works. Raises the error of the first part that failed.

        Parts begin in order, so that is the same part in every run. An interrupt is raised after the wait.
        """
        interrupt: BaseException | None = None
        while not self._closed or len(self._ended) < len(self._begun):
            try:
                self._todo.clear()
                self._closed = True
                while len(self._ended) < len(self._begun):
                    self._news.get()
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt
        if self._errors:
            raise self._errors[min(self._errors)]


class Helpers:
    """The helpers of a process, at most `size` of them: by default one per core that it may use, less one."""

    def __init__(self, size: int | None = None) -> None:
        self.size = num_cores() - 1 if size is None else size
        self._forked()

    def run(self, function: Callable[[Argument], T], arguments: Sequence[Argument]) -> list[T]:
        """The results of `function` for all `arguments`, in order, computed at the same time.

        Raises what one of the calls raised, when none runs any more.
        """
        job = _Job(function, arguments)
        try:
            self._callers.add(job)
            wanted = min(len(arguments), self.size + 2 - len(self._callers)) - 1
            for _ in range(wanted):
                self._jobs.put(job)
            if self._running < wanted:
                self._start(wanted)
            job.work()
        finally:
            self._callers.discard(job)
            job.close()
        return [job.results[number] for number in range(len(arguments))]

    def _start(self, wanted: int) -> None:
        with self._lock:
            while self._running < wanted:
                try:
                    threading.Thread(target=self._help, name="partita helper", daemon=True).start()
                except RuntimeError:  # an ending process has no further threads
                    return
                self._running += 1

    def _help(self) -> None:
        with np.errstate(all="ignore"):  # as in the threads that run kernels
            while True:
                try:
                    self._jobs.get(timeout=IDLE_S).help()
                except Empty:
                    with self._lock:
                        if self._jobs.empty():
                            self._running -= 1
                            return

    def _forked(self) -> None:
        self._jobs: SimpleQueue[_Job[Any, Any]] = SimpleQueue()
        self._callers: set[_Job[Any, Any]] = set()
        self._lock = threading.Lock()
        self._running = 0

    def survive_forks(self) -> None:
        """Lets forked processes have helpers of their own; for pools that live as long as the process."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)


HELPERS = Helpers()
HELPERS.survive_forks()
