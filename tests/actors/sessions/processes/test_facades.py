"""Sessions for scripts and for asyncio programs work over worker processes, too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from partita.actors import BlockingSession, open_asyncio_session
from tests.actors.sessions.processes.graphs import doubled

if TYPE_CHECKING:
    from distributed import LocalCluster

X = {"x": np.float32(2)}


def test_a_blocking_session(cluster: LocalCluster) -> None:
    """trio runs in a thread of its own then."""
    with BlockingSession(doubled(), "cpu:2", workers=cluster.scheduler_address) as session:
        assert session.run("y", X) == [-4]


def test_a_session_in_asyncio(cluster: LocalCluster) -> None:
    """trio is a guest of a loop then that is not dask's."""

    async def run() -> list[np.ndarray]:
        async with open_asyncio_session(doubled(), "cpu:2", workers=cluster.scheduler_address) as session:
            return await session.run("y", X)

    assert asyncio.run(run()) == [-4]
