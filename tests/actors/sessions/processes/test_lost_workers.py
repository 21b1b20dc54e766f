"""Worker processes that die, stop, leave and come back: who uses them hears it, long before a time limit of TCP."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import trio

from partita.errors import UnavailableError
from tests.actors.sessions.processes.talk import Talk, connected, message, release, two

if TYPE_CHECKING:
    from distributed import LocalCluster


async def test_a_killed_worker_is_lost_and_started_again(cluster: LocalCluster) -> None:
    """The connection breaks; the other one goes on; the worker leaves `live`, and another process joins."""
    async with connected(cluster.scheduler_address) as opened:
        killed, other = await two(opened)
        talk, goes_on = Talk(await opened.open(killed)), Talk(await opened.open(other))
        os.kill(killed.pid, signal.SIGKILL)
        error = await talk.lost()
        assert type(error) is UnavailableError
        assert f"the connection to worker {killed.name} at {killed.address} broke" in error.message
        goes_on.post(message("echo"))
        await goes_on.hear()
        while killed.process_id in opened.live or len(opened.live) < 2:
            await opened.changed()
        (new,) = opened.live.keys() - {killed.process_id, other.process_id}
        talk = Talk(await opened.open(opened.live[new]))
        talk.post(message("where"))
        assert (await talk.hear())[0].header["process"] == new
        assert opened.live[new].address != killed.address


async def test_a_stopped_worker_is_found_by_the_heartbeat(cluster: LocalCluster) -> None:
    """Its socket stays open, and nothing comes; a session with more patience goes on with it."""
    async with (
        connected(cluster.scheduler_address, heartbeat_s=0.2) as impatient,
        connected(cluster.scheduler_address, heartbeat_s=60) as patient,
    ):
        stopped = (await two(impatient))[0]
        talk, goes_on = Talk(await impatient.open(stopped)), Talk(await patient.open(stopped))
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            error = await talk.lost()
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
        assert type(error) is UnavailableError
        assert error.message == f"worker {stopped.name} at {stopped.address} has given no sign of life for 0.2 s"
        goes_on.post(message("echo"))
        await goes_on.hear()


async def test_a_worker_whose_trio_is_busy_lives(cluster: LocalCluster) -> None:
    """Beats come from the loop of dask, while the loop of trio does something else for many of them."""
    beats, enough = 0, trio.Event()

    def count() -> None:
        nonlocal beats
        beats += 1
        if beats == 12:
            enough.set()

    async with connected(cluster.scheduler_address, heartbeat_s=0.5) as opened:
        worker = (await two(opened))[0]
        talk = Talk(await opened.open(worker))
        link, bridge = talk.connection._link, talk.connection._bridge
        assert link is not None
        hear = link._hear

        def hear_and_count() -> None:
            hear()
            bridge.to_trio(count)

        link._hear = hear_and_count  # type: ignore[method-assign]  # called for each frame
        talk.post(message("block"), message("echo"))
        await enough.wait()
        assert talk.batches == []
        await trio.to_thread.run_sync(call_in, cluster, worker.address, release)
        assert len(await talk.hear()) == 1


def call_in(cluster: LocalCluster, address: str, function: Callable[[], None]) -> None:
    """Has dask call a function in a worker."""
    from distributed import Client

    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.run(function, workers=[address])


async def test_a_worker_that_dask_retires_is_left_first(cluster: LocalCluster) -> None:
    """The session is told, and works on; the worker closes when the session has left it, and refuses new ones."""
    async with connected(cluster.scheduler_address) as opened:
        retired, _ = await two(opened)
        talk = Talk(await opened.open(retired))
        talk.post(message("retire"), message("echo"))
        await talk.hear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, retire, cluster, retired.address)
            assert (await talk.hear())[0].header == {"op": "retiring"}
            talk.post(message("echo"))
            assert (await talk.hear())[0].header == {"op": "echo"}
            await talk.connection.aclose()
        while retired.process_id in opened.live:
            await opened.changed()


def retire(cluster: LocalCluster, address: str) -> None:
    """Retires a worker as an operator does; it is not started again."""
    from distributed import Client

    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.retire_workers([address])


@pytest.mark.usefixtures("dask")
async def test_a_cluster_that_is_closed_under_a_session(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Connections are lost, then the hope for other workers, when dask stops looking for the scheduler."""
    from partita.actors.sessions.processes import dask_client
    from partita.actors.sessions.processes.local_cluster import start_local_cluster

    monkeypatch.setattr(dask_client, "_CONNECT_S", 2.0)

    cluster = await trio.to_thread.run_sync(start_local_cluster, 1)
    async with connected(cluster.scheduler_address) as opened:
        (worker,) = opened.live.values()
        talk = Talk(await opened.open(worker))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, cluster.close)
            error = await talk.lost()
        assert type(error) is UnavailableError
        while opened.error is None:
            await opened.changed()
        assert f"the dask scheduler at {cluster.scheduler_address} is gone" in opened.error.message
        assert not opened.live
    assert not list(recwarn)
