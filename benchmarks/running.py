"""Requests in sessions, ours and TensorFlow's, side by side.

Both sides read the same bytes and get the same feeds; their values are compared before anything is timed; both use the
usual call, `run`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from partita.actors import Session, open_session
from partita.devices.cluster import local_cluster
from partita.graph.dtypes import Array
from partita.graph.graphdef.importer import graph_def_to_graph

from .bench import Bench
from .peers.process import Peer
from .sampling import Run, Sample, now
from .workloads import Workload

_TOLERANCE = 1e-3  # relative to the largest value: sums in another order, through fifty layers
_MOST_STEPS = 5000


def request(bench: Bench, workload: Workload) -> dict[str, Any]:
    """The workload as arguments of a peer's action: JSON."""
    return {
        "file": str(bench.file(workload)),
        "devices": workload.devices,
        "feeds": {name: list(shape) for name, shape in workload.feeds.items()},
        "fetches": list(workload.fetches),
        "targets": list(workload.targets),
    }


class Ours:
    """A session of ours with the workload's request, ready to be timed."""

    def __init__(self, session: Session, workload: Workload) -> None:
        self._session = session
        self._fetches, self._targets = workload.fetches, workload.targets
        self._feeds = {name: np.full(shape, 0.5, np.float32) for name, shape in workload.feeds.items()}

    async def step(self) -> list[Array]:
        """One step: its values."""
        return await self._session.run(self._fetches, self._feeds, self._targets)

    async def steps(self, count: int) -> Sample:
        """Time of `count` steps."""
        run, fetches, feeds, targets = self._session.run, self._fetches, self._feeds, self._targets
        before = now()
        for _ in range(count):
            await run(fetches, feeds, targets)
        return now() - before


async def side_by_side(bench: Bench, session: Session, workload: Workload, *, threads: int = 0) -> dict[str, Run]:
    """Runs of one step each, "ours" and, if TensorFlow is installed, "peer"; a run repeats the step to fill its time.

    `threads` is what TensorFlow may use, 0 for all. Raises AssertionError when the values differ.
    """
    ours = Ours(session, workload)
    values = await ours.step()
    runs = {"ours": await repeated(bench, ours.steps)}
    peer = bench.peer("tensorflow")
    if peer is not None:
        running = peer
        number, theirs = running.call("start", **request(bench, workload), threads=threads)
        check_equal(values, theirs)

        async def their_steps(count: int) -> Sample:
            return running.time("steps", number=number, count=count)

        runs["peer"] = await repeated(bench, their_steps)
    return runs


async def repeated(bench: Bench, steps: Callable[[int], Awaitable[Sample]]) -> Run:
    """A run of as many steps as fill the time of a run; its sample is that of one step."""
    seconds = (await steps(1)).wall_s
    count = max(1, min(_MOST_STEPS, int(bench.sizes.seconds_a_run / max(seconds, 1e-7))))

    async def run() -> Sample:
        return (await steps(count)).per(count)

    return run


def check_equal(ours: Sequence[Array], theirs: Sequence[Sequence[float]]) -> None:
    """AssertionError when the values differ from the peer's."""
    for mine, other in zip(ours, theirs, strict=True):
        largest = np.max(np.abs(np.nan_to_num(other)), initial=1e-6)
        start = np.ravel(mine)[: len(other)]
        np.testing.assert_allclose(start, other, rtol=_TOLERANCE, atol=float(_TOLERANCE * largest))


async def our_set_up(workload: Workload) -> Sample:
    """Opening a session and its first run, minus importing the graph and the second run.

    The rest is checking attrs, placing, pruning, partitioning and compiling.
    """
    cluster = local_cluster(f"cpu:{workload.devices}")
    start = now()
    graph = graph_def_to_graph(workload.data, add_default_attrs=True)
    importing = now() - start
    del graph
    start = now()
    async with open_session(workload.data, cluster) as session:
        ours = Ours(session, workload)
        await ours.steps(1)
        first = now() - start
        return first - importing - await ours.steps(1)


def their_set_up(bench: Bench, peer: Peer, workload: Workload) -> Sample:
    """The same for TensorFlow, whose sessions place and compile in their first run."""
    return peer.time("set_up", **request(bench, workload))
