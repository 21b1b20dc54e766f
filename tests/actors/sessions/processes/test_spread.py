"""Which worker hosts which devices."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from partita.actors.sessions.processes.session.spread import spread_over
from partita.devices.catalog import device_spec
from partita.devices.cluster import Cluster, local_cluster
from partita.devices.device import Device
from partita.errors import InvalidArgumentError


@dataclass(frozen=True)
class Worker:
    """A `NamedWorker`."""

    number: int

    @property
    def process_id(self) -> str:
        return f"process {self.number}"

    @property
    def name(self) -> str:
        return str(self.number)

    @property
    def address(self) -> str:
        return f"tcp://host:{self.number}"


WORKERS = [Worker(number) for number in range(3)]


def spread(cluster: Cluster, count: int, fixed: dict[str, str | int] | None = None) -> list[int]:
    """The number of the worker of each device."""
    hosts = spread_over(cluster, WORKERS[:count], fixed)
    return [int(hosts[name].split()[1]) for name in cluster.names]


def tasks(*sizes: int) -> Cluster:
    """Tasks with so many CPUs."""
    spec = device_spec("generic-cpu")
    return Cluster([Device(spec, index, task=task) for task, size in enumerate(sizes) for index in range(size)])


@pytest.mark.parametrize(
    ("cluster", "count", "expected"),
    [
        (local_cluster("cpu:3"), 2, [0, 0, 1]),
        (local_cluster("cpu:2"), 3, [0, 1]),
        (tasks(1, 1, 1, 1), 2, [0, 0, 1, 1]),
        (tasks(2, 2, 2), 2, [0, 0, 0, 0, 1, 1]),
        (tasks(1, 4), 3, [0, 1, 1, 2, 2]),
        (tasks(2, 1), 3, [0, 1, 2]),
    ],
)
def test_tasks_stay_whole_while_there_are_enough(cluster: Cluster, count: int, expected: list[int]) -> None:
    assert spread(cluster, count) == expected


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(1, 3))
def test_all_workers_get_a_share(sizes: list[int], count: int) -> None:
    """Consecutive devices, as far as there are any; of a task that need not be cut all of them."""
    cluster = tasks(*sizes)
    found = spread(cluster, count)
    assert found == sorted(found)
    assert set(found) == set(range(min(count, len(cluster))))
    if len(sizes) >= count:
        assert len({(device.task, host) for device, host in zip(cluster, found, strict=True)}) == len(sizes)


@pytest.mark.parametrize("worker", [1, "1", "tcp://host:1"])
def test_a_caller_fixes_devices(worker: str | int) -> None:
    assert spread(local_cluster("cpu:3"), 2, {"cpu:0": worker}) == [1, 0, 1]


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"cpu:7": 0}, "'cpu:7' is no device of this cluster"),
        ({"cpu:0": 5}, "there are workers 0 to 1"),
        ({"cpu:0": "tcp://hots:1"}, "did you mean 'tcp://host:1'"),
    ],
)
def test_what_does_not_exist_is_refused(fixed: dict[str, str | int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        spread(local_cluster("cpu:3"), 2, fixed)
