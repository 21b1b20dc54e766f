"""Who `workers=` names: an address, a Client of any kind, or a number of processes that live as long as the session."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
import trio

from partita.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PartitaError,
    UnavailableError,
    UnimplementedError,
)
from tests.actors.sessions.processes.talk import Talk, connected, message, two

if TYPE_CHECKING:
    from distributed import LocalCluster


async def in_thread(function: Callable[..., Any], *arguments: object) -> Any:  # Any: what the function returns
    """Calls what blocks."""
    return await trio.to_thread.run_sync(function, *arguments)


def lives(pid: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.usefixtures("dask")
async def test_a_number_starts_processes_and_ends_them(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing of them is left, neither processes nor threads, and nothing was printed."""
    threads = set(threading.enumerate())
    async with connected(2) as opened:
        workers = list(opened.live.values())
        talks = [Talk(await opened.open(worker)) for worker in workers]
        for talk in talks:
            talk.post(message("where"))
            assert (await talk.hear())[0].header["op"] == "here"
        assert [worker.name for worker in workers] == ["0", "1"]
        assert all(worker.address.startswith("tcp://127.0.0.1:") for worker in workers)
        assert all(lives(worker.pid) for worker in workers)
    assert not any(lives(worker.pid) for worker in workers)
    for thread in set(threading.enumerate()) - threads:
        if not thread.name.startswith(("Trio thread", "Dask-Offload")):  # pools
            await in_thread(thread.join)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("dask")
def test_what_does_not_end_in_time_is_left_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A session has ended when it closes, whatever becomes of dask."""
    from partita.actors.sessions.processes.dask_client import DaskClient

    class Late:
        """A client, or a cluster, that does not close."""

        def close(self, timeout: float) -> None:
            raise TimeoutError(f"timed out after {timeout} s.")

    dask = DaskClient.__new__(DaskClient)
    dask.__dict__.update(address="tcp://10.0.0.5:8786", _looking=None, _client=Late(), _local=Late())
    dask.close()
    assert [record.getMessage() for record in caplog.records] == [
        "the dask scheduler at tcp://10.0.0.5:8786 has not answered for 10 s; it is left",
        "worker processes have not ended after 30 s; they end with this one",
    ]


async def test_a_client_is_not_used_itself(cluster: LocalCluster) -> None:
    """It may be closed while the session lives, and its handlers of events stay its own."""
    from distributed import Client

    client = await in_thread(lambda: Client(cluster.scheduler_address, set_as_default=False))
    async with connected(client) as opened:
        await in_thread(client.close)
        talk = Talk(await opened.open((await two(opened))[0]))
        talk.post(message("echo"))
        assert len(await talk.hear()) == 1


async def test_a_client_of_asyncio_will_do(cluster: LocalCluster) -> None:
    """Its loop is not waited for."""
    from distributed import Client

    opened, leave = Event(), asyncio.Event()
    clients: list[Client] = []

    async def use() -> None:
        async with Client(cluster.scheduler_address, set_as_default=False, asynchronous=True) as client:
            clients.append(client)
            opened.set()
            await leave.wait()

    using = asyncio.run_coroutine_threadsafe(use(), cluster.loop.asyncio_loop)
    await in_thread(opened.wait)
    async with connected(clients[0]) as workers:
        assert len(await two(workers)) == 2
    cluster.loop.asyncio_loop.call_soon_threadsafe(leave.set)
    await in_thread(using.result)


async def test_a_second_session_finds_the_plugin(cluster: LocalCluster) -> None:
    """Sessions at the same time, on the same workers: one thread of trio in a worker serves them all."""
    async with connected(cluster.scheduler_address) as one, connected(cluster.scheduler_address) as other:
        assert list(one.live) == list(other.live)
        assert one.session_id != other.session_id
        talks = [Talk(await each.open((await two(each))[0])) for each in (one, other)]
        for talk in talks:
            talk.post(message("where"))
            (here,) = await talk.hear()
        assert here.header["threads"].count("partita worker") == 1


async def test_the_plugin_may_be_taken_away(cluster: LocalCluster) -> None:
    """Its thread ends with it, and a later session installs it again."""
    from distributed import Client

    async with connected(cluster.scheduler_address) as opened:
        await opened.open((await two(opened))[0])
    with await in_thread(lambda: Client(cluster.scheduler_address, set_as_default=False)) as client:
        await in_thread(client.unregister_worker_plugin, "partita-echo")
        names = await in_thread(client.run, names_of_threads)
        assert all("partita worker" not in each for each in names.values())
    async with connected(cluster.scheduler_address) as opened:
        talk = Talk(await opened.open((await two(opened))[0]))
        talk.post(message("echo"))
        await talk.hear()


def names_of_threads() -> list[str]:
    """Of the process that calls this."""
    return [thread.name for thread in threading.enumerate()]


async def refused(workers: Any) -> PartitaError:  # Any: also what is no way to name workers
    """What `connect_workers` raises."""
    with pytest.raises(PartitaError) as error:
        async with connected(workers):
            pass
    return error.value


@pytest.mark.parametrize("workers", [0, -1, 5000, True, 1.5, None, ["tcp://127.0.0.1:1"]])
@pytest.mark.usefixtures("cluster")
async def test_other_values_are_refused(workers: object) -> None:
    """By the name of the setting, with what it may be."""
    error = await refused(workers)
    assert type(error) is InvalidArgumentError
    assert f"workers={workers!r}" in error.message


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("address", "kind", "text"),
    [
        ("nonsense", InvalidArgumentError, "is no address of a dask scheduler: missing port number"),
        ("tcp://", InvalidArgumentError, "is no address of a dask scheduler: missing port number"),
        ("quic://127.0.0.1:1", UnimplementedError, "over tcp:// or tls://"),
        ("inproc://127.0.0.1/1/1", UnimplementedError, "over tcp:// or tls://"),
        ("tls://127.0.0.1:1", FailedPreconditionError, "needs certificates"),
        ("tcp://127.0.0.1:1", UnavailableError, "no dask scheduler answers"),
    ],
)
async def test_an_address_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str, kind: type[PartitaError], text: str
) -> None:
    """The error has the address, and what dask says about it."""
    monkeypatch.setattr("partita.actors.sessions.processes.dask_client._CONNECT_S", 0.05)
    error = await refused(address)
    assert type(error) is kind
    assert repr(address) in error.message
    assert text in error.message


async def test_a_closed_client_is_refused(cluster: LocalCluster) -> None:
    """It says that it is closed."""
    from distributed import Client

    client = await in_thread(lambda: Client(cluster.scheduler_address, set_as_default=False))
    await in_thread(client.close)
    error = await refused(client)
    assert type(error) is FailedPreconditionError
    assert "the client is closed" in error.message


@pytest.mark.usefixtures("cluster")
async def test_workers_in_threads_are_refused() -> None:
    """Those of this process, over inproc:// and over tcp://."""
    from distributed import LocalCluster

    def start(protocol: str) -> LocalCluster:
        return LocalCluster(n_workers=1, processes=False, protocol=protocol, dashboard_address=":0")

    for protocol, kind in (("inproc", UnimplementedError), ("tcp", FailedPreconditionError)):
        threads = await in_thread(start, protocol)
        try:
            error = await refused(threads.scheduler_address)
            assert type(error) is kind
            assert "process" in error.message
        finally:
            await in_thread(threads.close)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
async def test_a_heartbeat_that_cannot_be_is_refused(cluster: LocalCluster, seconds: float) -> None:
    """It is a number of seconds above 0."""
    with pytest.raises(InvalidArgumentError, match="heartbeat_s="):
        async with connected(cluster.scheduler_address, heartbeat_s=seconds):
            pass


async def test_a_cluster_without_workers_is_refused(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some time."""
    from distributed import LocalCluster as Cluster

    from partita.actors.sessions.processes import dask_client

    monkeypatch.setattr(dask_client, "_CONNECT_S", 0.05)
    empty = await in_thread(lambda: Cluster(n_workers=0, dashboard_address=":0"))
    try:
        error = await refused(empty.scheduler_address)
        assert type(error) is UnavailableError
        assert "has no worker" in error.message
    finally:
        await in_thread(empty.close)


async def test_a_plugin_that_cannot_be_loaded_is_refused(cluster: LocalCluster) -> None:
    """A worker whose Partita lacks something says what."""
    from partita.actors.sessions.processes.client import connect_workers
    from partita.actors.sessions.processes.plugin import PartitaPlugin

    class Lacking(PartitaPlugin):
        async def setup(self, worker: object) -> None:
            raise ImportError("no module named nothing")

    with pytest.raises(FailedPreconditionError, match="cannot load Lacking: ImportError: no module named nothing"):
        await connect_workers(cluster.scheduler_address, plugin=Lacking("partita-lacking"))
