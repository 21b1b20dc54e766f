"""The memory of a session over two worker processes stays, however many steps run: what each step holds is given back.

    python -m tests.laws.worker_memory [--steps N] [--first N]

Most steps end with values; every 25th fails, every 25th is cancelled, every 100th is traced. Prints the resident memory
of every process after the first steps and at the end. The exit code is 1 if one has grown by more than 5 MB.
"""

from __future__ import annotations

import argparse
import gc
import os
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import trio

from benchmarks.memory import resident_bytes
from partita.actors import Session, open_session
from partita.errors import InvalidArgumentError
from partita.graph.protos import RunMetadata, RunOptions
from tests.laws.worker_kills.scene import X, cluster, right_total, scene

MOST_BYTES = 5_000_000
EVERY = 25
TRACED = RunOptions(trace_level=RunOptions.FULL_TRACE)
DAMAGED = np.full_like(X, np.nan)


@dataclass
class Growth:
    """Resident bytes of processes by name, `first` after some steps and `last` at the end."""

    first: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def worst(self) -> int:
        """By how much the process has grown that has grown most."""
        return max(self.last[name] - self.first[name] for name in self.last)


async def one_step(session: Session, number: int, right: float) -> None:
    """One of the steps: right, failing, cancelled or traced."""
    kind = number % EVERY
    if kind == 1:
        try:
            await session.run("checked", {"x": DAMAGED})
        except InvalidArgumentError:
            return
        raise AssertionError("a total that is no number was let through")
    if kind == 2:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run, "checked", {"x": X}, "add")
                await trio.lowlevel.checkpoint()
                scope.cancel()
        return
    options, metadata = (TRACED, RunMetadata()) if number % (4 * EVERY) == 3 else (None, None)
    (total,) = await session.run("checked", {"x": X}, "add", options=options, metadata=metadata)
    assert total == right


async def growth(address: str, steps: int, first: int) -> Growth:
    """Runs steps over the workers of a cluster, and says what the processes have at two times."""
    found, begun, right = Growth(), perf_counter(), await right_total()
    async with open_session(scene(cluster(1).names), cluster(1), workers=address) as session:
        members = session._workers.members.values()  # type: ignore[attr-defined]  # of `RemoteWorkers`
        pids = {"session": os.getpid(), **{f"worker {each.worker.name}": each.worker.pid for each in members}}

        def memory() -> dict[str, int]:
            gc.collect()
            return {name: resident_bytes(pid) for name, pid in pids.items()}

        await session.run([], targets="init")
        for number in range(steps):
            if number == first:
                found.first = memory()
            await one_step(session, number, right)
        found.last, found.seconds = memory(), perf_counter() - begun
    return found


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.worker_memory", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000, help="how many steps")
    parser.add_argument("--first", type=int, default=1_000, help="after how many of them memory is looked at first")
    arguments = parser.parse_args()
    from partita.actors.sessions.processes.local_cluster import start_local_cluster

    with start_local_cluster(2) as workers:
        found = trio.run(growth, workers.scheduler_address, arguments.steps, arguments.first)
    for name, last in found.last.items():
        print(f"{name}: {found.first[name] / 1e6:.1f} MB, at the end {(last - found.first[name]) / 1e6:+.1f} MB")
    print(f"{arguments.steps} steps in {found.seconds:.0f} s")
    return 1 if found.worst > MOST_BYTES else 0


if __name__ == "__main__":
    raise SystemExit(main())
