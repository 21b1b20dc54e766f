"""A sweep of plans whose workers die: on worker processes and on a dask cluster it makes the table of one process.

    python -m tests.laws.sweeps.capacity [FILE.toml] [--workers N]

The file is the shipped one of 200 plans of the README's model, unless another is given. When a quarter of the points is
done, a worker is killed. The exit code is 1 if a table differs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from partita.graph import Progress
from partita.scenarios import SerialExecutor, SweepTable, WorkerProcesses
from partita.scenarios.executors.dask_cluster import dask_cluster
from partita.scenarios.sweeps.command_points import swept_command
from partita.scenarios.sweeps.sweep import run_sweep
from partita.scenarios.sweeps.sweep_file import SweepFile, read_sweep

CHECKOUT = Path(__file__).parents[3]
SHIPPED = CHECKOUT / "scenarios" / "examples" / "capacity_sweep.toml"


class DyingWorker:
    """A callback of progress that kills a worker when a quarter of the points is done."""

    def __init__(self, worker: Callable[[], int]) -> None:
        self._worker = worker
        self.is_dead = False

    def __call__(self, progress: Progress) -> None:
        """Looks how many are done."""
        if not self.is_dead and 4 * progress.done >= (progress.total or 0):
            self.is_dead = True
            os.kill(self._worker(), signal.SIGKILL)


def swept(described: SweepFile, executor: Executor, dying: DyingWorker | None = None) -> SweepTable:
    """The table of a sweep in which a worker dies; the death must have come."""
    function = swept_command(described.point, described.axes)
    table = run_sweep(function, described.axes, executor=executor, on_progress=dying)
    assert dying is None or dying.is_dead
    return table


def tables(described: SweepFile, workers: int) -> dict[str, SweepTable]:
    """By executor the table; all but the first have lost a worker."""
    found = {"serial": swept(described, SerialExecutor())}
    with WorkerProcesses(workers) as processes:
        found["processes"] = swept(described, processes, DyingWorker(lambda: processes.process_ids()[0]))
    with dask_cluster(workers=workers) as cluster:
        ids = list(cluster.client.run(os.getpid).values())
        found["dask"] = swept(described, cluster, DyingWorker(lambda: ids[0]))
    return found


def main() -> int:
    """Compares the three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=SHIPPED)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args()
    os.chdir(CHECKOUT)
    found = tables(read_sweep(given.file), given.workers)
    for name, table in found.items():
        print(f"{name}: {len(table)} points, {len(table.failed)} with an error, equal: {table == found['serial']}")
    return 0 if all(table == found["serial"] for table in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
