"""How long the event loop is held: a task passes one checkpoint after the other, and its longest wait is the figure.

The CPU figure is that of the loop's own thread. It does not count waits for the lock of the interpreter, which a worker
thread gives up after at most 5 ms; the wall figure is the longest gap between two wake-ups of that task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter, thread_time

import trio

from partita.actors import open_session

from .bench import Bench
from .bench_loops import loop
from .rows import Figure, Measured


class Beats:
    """A task that passes checkpoints, and its longest waits by both clocks."""

    def __init__(self) -> None:
        self._wall, self._cpu = perf_counter(), thread_time()
        self._longest = Figure(0, 0)

    async def run(self) -> None:
        """Passes checkpoints until it is cancelled."""
        while True:
            self._beat()
            await trio.lowlevel.checkpoint()

    def _beat(self) -> None:
        wall, cpu = perf_counter(), thread_time()
        self._longest = longer(self._longest, Figure(wall - self._wall, cpu - self._cpu))
        self._wall, self._cpu = wall, cpu

    def add(self, hold: Figure) -> None:
        """Counts a hold that was taken before."""
        self._longest = longer(self._longest, hold)

    def longest(self) -> Figure:
        """The longest waits since the call before."""
        self._beat()
        longest, self._longest = self._longest, Figure(0, 0)
        return longest


def longer(first: Figure, second: Figure) -> Figure:
    """The longer time, for each clock by itself."""
    return Figure(max(first.value, second.value), max(first.cpu or 0, second.cpu or 0))


async def load_modules(bench: Bench) -> None:
    """Loads what every session needs, unless that is to be measured."""
    if not bench.cold:
        async with open_session(loop(1).data):
            pass


async def held(bench: Bench, work: Callable[[Beats], Awaitable[None]]) -> Measured:
    """The longest hold of work, which may begin the measurement anew."""
    await load_modules(bench)
    beats = Beats()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(beats.run)
        await trio.lowlevel.checkpoint()
        beats.longest()
        await work(beats)
        nursery.cancel_scope.cancel()
    return Measured(beats.longest())
