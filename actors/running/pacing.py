"""The time budget of an event loop: when code that runs steps must let other tasks run.

All sessions of an event loop share one slice of time in each turn of the loop, however many they are and whatever they
do: run chunks of kernels, start parts, prepare requests, move a virtual clock.

    turn of the loop      1                             2
    task of session A     begins the slice, runs 2 ms   0.4 ms are left of a slice: runs those
    task of session B     0.5 ms are left: runs those   begins the slice, runs 2.1 ms
    another task          waits 2.5 ms, runs            waits 2.5 ms, runs
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from weakref import finalize

import trio

from .chunks.learning import LearningLimits

DEFAULT_BUDGET_S = 0.005
DEFAULT_THREAD_LIMIT_S = 0.001


class SharedSlice:
    """The slice of an event loop: the first task that goes on after a switch of tasks begins it, the others use what it
    leaves.

    It is used up at `end`, in seconds on `clock`. Slices are numbered, so that a task knows whether another has begun a
    slice since it waits. A slice is half the smallest budget of those that share it: a task may have to wait for one
    at the end of a turn and for one at the start of the next.
    """

    __slots__ = ("__weakref__", "_budgets", "_length_s", "clock", "end", "number")

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.clock = clock
        self.number = 0
        self._budgets: list[float] = []
        self._length_s = DEFAULT_BUDGET_S / 2
        self.end = clock() + self._length_s

    def join(self, budget_s: float) -> None:
        """Somebody with this budget shares the slice until `leave`."""
        self._budgets.append(budget_s)
        self._length_s = min(self._budgets) / 2
        self.end = min(self.end, self.clock() + self._length_s)

    def leave(self, budget_s: float) -> None:
        """Somebody with this budget shares the slice no more."""
        self._budgets.remove(budget_s)
        self._length_s = min(self._budgets, default=DEFAULT_BUDGET_S) / 2

    def may_go_on(self, number: int) -> bool:
        """Whether there is time to go on, after a switch of tasks before which slice `number` was the last one."""
        if number == self.number:
            self.number += 1
            self.end = self.clock() + self._length_s
            return True
        return self.clock() <= self.end

    async def yield_if_due(self) -> None:
        """Lets other tasks run if the slice is used up. A checkpoint only then."""
        if self.clock() > self.end:
            await self.yield_now()

    async def yield_now(self) -> None:
        """Lets other tasks run until there is time to go on. At least one checkpoint."""
        while True:
            number = self.number
            await trio.lowlevel.checkpoint()
            if self.may_go_on(number):
                return


_slice_of_loop: trio.lowlevel.RunVar[SharedSlice | None] = trio.lowlevel.RunVar("slice of Partita's tasks", None)


def shared_slice() -> SharedSlice:
    """The slice of the event loop that runs; one of its own where none runs."""
    if not trio.lowlevel.in_trio_run():
        return SharedSlice()
    found = _slice_of_loop.get()
    if found is None:
        found = SharedSlice()
        _slice_of_loop.set(found)
    return found


class Pacer:
    """What one session may take of the slice of its event loop, and the limits by which it learns about its plans."""

    __slots__ = ("__weakref__", "budget_s", "clock", "limits", "notice_s", "slice", "slow_s")

    def __init__(
        self,
        budget_s: float = DEFAULT_BUDGET_S,
        thread_limit_s: float = DEFAULT_THREAD_LIMIT_S,
        *,
        only_device: bool = False,
        shared: SharedSlice | None = None,
    ) -> None:
        """Kernels that take longer than `thread_limit_s` run in a worker thread, which costs about 100 us.

        With an only device nothing else would run beside them: there the budget is the limit, if it is longer.
        `shared` is by default the slice of the event loop.
        """
        self.budget_s = budget_s
        self.limits = LearningLimits(budget_s / 2, max(budget_s, thread_limit_s) if only_device else thread_limit_s)
        self.notice_s = self.limits.notice_s
        self.slow_s = min(self.limits)
        self.slice = shared_slice() if shared is None else shared
        self.clock = self.slice.clock
        self.slice.join(budget_s)
        finalize(self, self.slice.leave, budget_s).atexit = False

    @property
    def is_due(self) -> bool:
        """Whether the slice is used up, so that other tasks must run."""
        return self.clock() > self.slice.end

    async def yield_if_due(self) -> None:
        """Lets other tasks run if the slice is used up. A checkpoint only then."""
        if self.clock() > self.slice.end:  # not `is_due`, whose call takes time
            await self.yield_now()

    async def yield_now(self) -> None:
        """As `SharedSlice.yield_now`."""
        await self.slice.yield_now()
