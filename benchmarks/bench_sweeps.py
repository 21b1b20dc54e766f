"""The row "sweep/...": points that wait, on two workers of a dask cluster, beside two worker processes.

Both are started before, and have run a point. What is left is what handing out points costs.
"""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import ExitStack
from importlib.util import find_spec
from time import sleep

from partita.scenarios import WorkerProcesses, sweep
from partita.scenarios.executors.dask_cluster import dask_cluster

from .bench import Bench
from .rows import POOL, Case, Figure, Measured, Skipped, share
from .sampling import Run, Sample, interleave, now

_WORKERS = 2


def wait(number: int, seconds: float) -> int:
    """A point: it takes so long and no time of the processor."""
    sleep(seconds)
    return number


def _swept(executor: Executor, points: int, seconds: float) -> Run:
    async def once() -> Sample:
        before = now()
        table = sweep(wait, {"seconds": [seconds], "number": range(points)}, executor=executor)
        assert table.column("value") == list(range(points))
        return now() - before

    return once


async def _points(bench: Bench) -> Measured:
    if find_spec("distributed") is None:
        raise Skipped("distributed is not installed: pip install '.[dask]'")
    points, seconds = bench.sizes.swept_points, bench.sizes.swept_s
    with ExitStack() as stack:
        executors: dict[str, Executor] = {
            "dask": stack.enter_context(dask_cluster(workers=_WORKERS)),
            "pool": stack.enter_context(WorkerProcesses(_WORKERS)),
        }
        for executor in executors.values():
            await _swept(executor, 2 * _WORKERS, 0.0)()
        runs = {name: _swept(executor, points, seconds) for name, executor in executors.items()}
        taken = await interleave(runs, bench.sizes.rounds_when_slow)
    return Measured(Figure.of(taken["dask"]), Figure.of(taken["pool"]), points * seconds / _WORKERS)


CASES = [Case("sweep/1,000 points of 50 ms on 2 workers, dask", POOL, share(1.25, 1.1), _points)]
