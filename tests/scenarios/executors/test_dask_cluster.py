"""A real cluster of dask, with processes: calls, deaths of workers, addresses."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import pytest

from partita.errors import InvalidArgumentError, UnavailableError, UnimplementedError
from partita.scenarios.executors.dask_cluster import DaskExecutor, dask_cluster, of_dask
from partita.scenarios.executors.in_flight import settled
from tests.scenarios.executors.called import process_id, squared_unless

NEEDED = "distributed is not installed: pip install '.[dask]'"


def test_a_call_that_kills_its_workers_fails_alone(local_dask: DaskExecutor) -> None:
    """What a worker had been given beside it is run again, and is not to blame."""
    calls = [partial(squared_unless, number, 7) for number in range(30)]
    ended = {call.number: call for batch in settled(local_dask, calls) for call in batch}
    assert [number for number, call in sorted(ended.items()) if call.error is not None] == [7]
    assert isinstance(ended[7].error, UnavailableError)
    assert "the dask workers that ran it died" in str(ended[7].error)
    assert [call.value for number, call in sorted(ended.items()) if number != 7] == [
        number * number for number in range(30) if number != 7
    ]


def test_calls_run_in_processes_of_their_own(local_dask: DaskExecutor) -> None:
    """One thread each."""
    ids = {call.value for batch in settled(local_dask, [process_id] * 8) for call in batch}
    assert len(ids) <= local_dask.threads() == 2


def test_executors_of_dask_are_known(local_dask: DaskExecutor) -> None:
    """A client, what it gives as an executor, and nothing else."""
    client: Any = local_dask.client
    for given in (client, client.get_executor()):
        executor = of_dask(given)
        assert executor is not None
        assert executor.threads() == 2
    assert of_dask(object()) is None


def test_a_running_cluster_is_used_by_its_address(local_dask: DaskExecutor) -> None:
    """It stays when the block ends."""
    client: Any = local_dask.client
    for _ in range(2):
        with dask_cluster(client.scheduler.address) as executor:
            assert executor.submit(abs, -3).result() == 3


def test_an_address_without_a_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, with what to do."""
    pytest.importorskip("distributed", reason=NEEDED)
    monkeypatch.setattr("partita.scenarios.executors.dask_cluster._CONNECT_S", 0.2)
    with (
        pytest.raises(UnavailableError, match="no dask scheduler answers"),
        dask_cluster("tcp://127.0.0.1:9"),
    ):
        pass
    with pytest.raises(InvalidArgumentError, match="write tcp://HOST:8786"), dask_cluster("nonsense://x"):
        pass


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is started."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnimplementedError, match=r"pip install 'partita\[dask\]'"), dask_cluster():
        pass
