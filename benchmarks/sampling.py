"""Clocks and medians.

Runs that are compared alternate, so that a machine that is busy for a while slows down all of them. The garbage of a
run is collected before the next.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time


@dataclass(frozen=True, slots=True)
class Sample:
    """Wall seconds and CPU seconds; CPU of all threads of the process together."""

    wall_s: float
    cpu_s: float

    def __sub__(self, other: Sample) -> Sample:
        return Sample(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s)

    def __add__(self, other: Sample) -> Sample:
        return Sample(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)

    def per(self, count: int) -> Sample:
        """The sample divided by `count` items."""
        return Sample(self.wall_s / count, self.cpu_s / count)


def now() -> Sample:
    """Both clocks; `now() - before` is the time since."""
    return Sample(perf_counter(), process_time())


Run = Callable[[], Awaitable[Sample]]


async def interleave(runs: Mapping[str, Run], repeats: int) -> dict[str, Sample]:
    """The median sample of every run after `repeats` rounds: a, b, a, b ... Wall and CPU have medians of their own."""
    taken: dict[str, list[Sample]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            gc.collect()
            taken[name].append(await run())
    return {name: middle(samples) for name, samples in taken.items()}


def middle(samples: list[Sample]) -> Sample:
    """The median of wall times and the median of CPU times."""
    return Sample(median(s.wall_s for s in samples), median(s.cpu_s for s in samples))


def best_of(call: Callable[[], object], count: int = 1, repeats: int = 5) -> float:
    """CPU seconds per item of the quickest of some calls that handle `count` items each: how floors are measured."""
    times = []
    for _ in range(repeats):
        before = now()
        call()
        times.append((now() - before).cpu_s)
    return min(times) / count
