"""Sessions over real worker processes of dask: what the tests in memory cannot show."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from partita.actors import BlockingSession, open_asyncio_session, open_session
from partita.actors.sessions.processes.session.remote_workers import RemoteWorkers
from partita.errors import UnavailableError
from partita.graph.builder import GraphBuilder
from tests.actors.sessions.processes.graphs import doubled, stateful
from tests.strategies import cpu

if TYPE_CHECKING:
    from distributed import LocalCluster

    from partita.actors import Session

TWO = np.float32(2)
KILLS = 5


@asynccontextmanager
async def over(cluster: LocalCluster, graph: Any, **settings: Any) -> AsyncIterator[Session]:
    """A session on two CPUs over the workers of a cluster."""
    async with open_session(graph, "cpu:2", workers=cluster.scheduler_address, **settings) as session:
        yield session


def remote(session: Session) -> RemoteWorkers:
    """The workers of a session."""
    assert isinstance(session._workers, RemoteWorkers)
    return session._workers


def pids(session: Session) -> dict[str, int]:
    """The processes that host devices, by device."""
    workers = remote(session)
    hosts = workers.homes.process_of
    return {name: workers.pool.live[process].pid for name, process in hosts.items()}  # type: ignore[attr-defined]  # of dask


async def test_devices_live_in_processes_of_their_own(cluster: LocalCluster) -> None:
    """State stays from step to step."""
    async with over(cluster, stateful()) as session:
        assert len({*pids(session).values(), os.getpid()}) == 3
        await session.run([], {"x": TWO}, ["set0", "set1"])
        assert await session.run(["neg0", "neg1"]) == [-2, -2]


async def test_large_tensors_arrive_as_they_were(cluster: LocalCluster) -> None:
    """Larger than the budget of bytes in flight together."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", None, device=cpu(0))
    for number in range(3):
        builder.op("Neg", builder.op("Neg", x, device=cpu(0))[0], name=f"y{number}", device=cpu(1))
    value = np.random.default_rng(0).random((8, 1 << 20), np.float32)
    async with over(cluster, builder) as session:
        for y in await session.run(["y0", "y1", "y2"], {"x": value}):
            np.testing.assert_array_equal(y, value)


async def test_cancelled_steps_leave_the_session_usable(cluster: LocalCluster) -> None:
    async with over(cluster, stateful()) as session:
        for _ in range(3):
            with trio.move_on_after(0.01) as scope:
                await session.run("taken")
            assert scope.cancelled_caught
        await session.run([], {"x": TWO}, ["put"])
        assert await session.run("taken") == [-2]
        assert session.statistics().steps_running == 0


async def test_killed_workers_are_replaced(cluster: LocalCluster) -> None:
    """At random moments: a step is right or unavailable, and the next one right.

    A worker that dies while it starts is not started again, so the next one is killed when the last has come back.
    """
    chance = random.Random(7)
    async with over(cluster, doubled()) as session:
        for _ in range(KILLS):
            while len(remote(session).pool.live) < 2:
                await remote(session).pool.changed()
            victim = chance.choice([*pids(session).values()])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run_until_lost, session)
                await trio.sleep(chance.random() * 0.05)
                os.kill(victim, signal.SIGKILL)
            with trio.fail_after(20):
                assert await session.run("y", {"x": TWO}) == [-4]


async def run_until_lost(session: Session) -> None:
    """Runs steps until one is unavailable, or a worker was lost between two steps; all others are right."""
    hosts = remote(session).homes.process_of
    while remote(session).homes.process_of == hosts:
        try:
            fetched = await session.run("y", {"x": TWO})
        except UnavailableError as error:
            lost = error.message
            break
        assert fetched == [-4]
    else:
        return
    assert "was lost" in lost


def test_a_blocking_session(cluster: LocalCluster) -> None:
    """trio runs in a thread of its own then."""
    with BlockingSession(doubled(), "cpu:2", workers=cluster.scheduler_address) as session:
        assert session.run("y", {"x": TWO}) == [-4]


def test_a_session_in_asyncio(cluster: LocalCluster) -> None:
    """trio is a guest of a loop then that is not dask's."""

    async def run() -> list[np.ndarray]:
        async with open_asyncio_session(doubled(), "cpu:2", workers=cluster.scheduler_address) as session:
            return await session.run("y", {"x": TWO})

    assert asyncio.run(run()) == [-4]
