"""Worker processes of this machine: their environment, and that of the process that starts them."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import trio

from partita.actors import open_session
from tests.actors.sessions.processes.graphs import stateful

TRIM, ONE_THREAD = "MALLOC_TRIM_THRESHOLD_", "OMP_NUM_THREADS"

pytestmark = pytest.mark.usefixtures("dask")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests has none of the variables."""
    for name in (TRIM, ONE_THREAD):
        monkeypatch.delenv(name, raising=False)


def of_a_worker() -> dict[str, str]:
    """The environment of a process that is started."""
    from distributed import Client

    from partita.actors.sessions.processes.local_cluster import start_local_cluster

    with start_local_cluster(1) as cluster, Client(cluster, set_as_default=False) as client:
        answers: dict[str, dict[str, str]] = client.run(lambda: dict(os.environ))
    (environment,) = answers.values()
    return environment


def own() -> dict[str, str]:
    """The environment of this process, without what dask keeps there for itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("__DASK")}


def test_only_workers_get_variables() -> None:
    """One BLAS thread each; freed memory is kept."""
    before, environment = own(), of_a_worker()
    assert environment[ONE_THREAD] == "1"
    assert TRIM not in environment
    assert own() == before


async def test_sessions_leave_the_environment_as_it_was() -> None:
    """Also while two open at once, and after a process that dies is started again."""
    before = own()

    async def use() -> None:
        async with open_session(stateful(), "cpu:2", workers=1) as session:
            pool: Any = session._workers.pool  # type: ignore[attr-defined]  # of RemoteWorkers; Any: of dask
            (first,) = pool.live.values()
            os.kill(first.pid, signal.SIGKILL)
            while first.process_id in pool.live or not pool.live:
                await pool.changed()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use)
        nursery.start_soon(use)
    assert own() == before


def test_a_variable_that_the_program_has_goes_to_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the value that it has there."""
    monkeypatch.setenv(TRIM, "131072")
    monkeypatch.setenv(ONE_THREAD, "2")
    environment = of_a_worker()
    assert (environment[TRIM], environment[ONE_THREAD]) == ("131072", "2")
    assert (os.environ[TRIM], os.environ[ONE_THREAD]) == ("131072", "2")
