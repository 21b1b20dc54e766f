"""Worker processes killed (-9) at random points of steps: typed errors, right steps, no hang and no wrong value.

    python -m tests.laws.worker_kills [--count N] [--seed FIRST]

Three workers run, and are started again by their nannies; every fifth session has one of its own. Prints each kill that
breaks the law, the median and the worst times, and the counts. The exit code is 1 if the law was broken.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

import trio

from tests.laws.worker_kills.kills import KillReport, WorkerKill, drawn, strike

if TYPE_CHECKING:
    from distributed import LocalCluster

WORKERS = 3
ERROR_S, RIGHT_S, RIGHT_AFTER_START_S = 0.5, 2.0, 3.0
HANG_S = 60.0


def outcome(kill: WorkerKill, address: str) -> KillReport | str:
    """What a kill led to; a text for what must not be."""

    async def run() -> KillReport | str:
        with trio.move_on_after(HANG_S):
            try:
                return await strike(kill, address)
            except Exception as error:  # noqa: BLE001  # whatever it is, it breaks the law
                return f"{type(error).__name__}: {error}{_causes(error)}"
        return f"hang: no end after {HANG_S:g} s"

    return trio.run(run)


def _causes(error: BaseException) -> str:
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return "".join(f"; {type(each).__name__}: {each}{_causes(each)}" for each in inner)


def late(kill: WorkerKill, report: KillReport) -> str | None:
    """What took longer than it may."""
    limit = RIGHT_AFTER_START_S if kill.starts_worker else RIGHT_S
    if report.error_s is not None and report.error_s > ERROR_S:
        return f"the error came {report.error_s:.3f} s after the kill"
    return f"the first right step ended {report.right_s:.3f} s after the kill" if report.right_s > limit else None


def run(cluster: LocalCluster, seeds: range) -> int:
    """Kills, and prints; how many broke the law."""
    from distributed import Client

    reports: list[tuple[WorkerKill, KillReport]] = []
    broken = 0
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        for seed in seeds:
            client.wait_for_workers(WORKERS)
            kill = drawn(seed)
            found = outcome(kill, cluster.scheduler_address)
            wrong = found if isinstance(found, str) else late(kill, found)
            if wrong is not None:
                broken += 1
                print(f"seed {seed}: {kill}\n    {wrong}", flush=True)
            if not isinstance(found, str):
                reports.append((kill, found))
    print(f"{len(seeds)} kills, {broken} broke the law")
    tell("error after the kill", [r.error_s for _, r in reports if r.error_s is not None])
    tell("right step on the survivors", [r.right_s for kill, r in reports if not kill.starts_worker])
    tell("right step on a worker that started", [r.right_s for kill, r in reports if kill.starts_worker])
    return broken


def tell(what: str, seconds: Sequence[float]) -> None:
    """Prints how often, the median and the worst."""
    if seconds:
        print(f"{what}: {len(seconds)} times, median {median(seconds):.3f} s, worst {max(seconds):.3f} s")


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.worker_kills", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many kills")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first")
    arguments = parser.parse_args()
    from partita.actors.sessions.processes.local_cluster import start_local_cluster

    with start_local_cluster(WORKERS) as cluster:
        return 1 if run(cluster, range(arguments.seed, arguments.seed + arguments.count)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
