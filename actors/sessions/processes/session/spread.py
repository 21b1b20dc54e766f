"""Which worker hosts which devices: whole tasks, evenly and in order, and devices where tasks are too few.

    tasks 0 1 2 3 over workers a b          a: 0 1         b: 2 3
    CPU:0 CPU:1 CPU:2 of one task           a: CPU:0 CPU:1     b: CPU:2
    the same with {"CPU:1": "b"}            a: CPU:0           b: CPU:1 CPU:2

A worker is named by its number, its name or its address; a device by any name that the cluster knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from .....devices.cluster import Cluster
from .....errors import InvalidArgumentError
from .....graph.suggestions import suggestion


class NamedWorker(Protocol):
    """A worker as users name it; see `client.LiveWorker`."""

    @property
    def process_id(self) -> str:
        """The name of its process."""

    @property
    def name(self) -> str:
        """As dask calls it."""

    @property
    def address(self) -> str:
        """Where it listens."""


def spread_over(
    cluster: Cluster, workers: Sequence[NamedWorker], spread: Mapping[str, str | int] | None = None
) -> dict[str, str]:
    """The process of each device, by full name. `spread` fixes some of them.

    Raises InvalidArgumentError for a device or a worker of it that does not exist.
    """
    tasks: dict[str, list[str]] = {}
    for device in cluster:
        tasks.setdefault(device.task_name, []).append(device.name)
    hosts: dict[str, str] = {}
    if len(tasks) >= len(workers):
        for devices, number in zip(tasks.values(), _even(len(tasks), len(workers)), strict=True):
            hosts.update(dict.fromkeys(devices, workers[number].process_id))
    else:
        first = 0
        for devices, count in zip(tasks.values(), _shares([*map(len, tasks.values())], len(workers)), strict=True):
            for name, number in zip(devices, _even(len(devices), count), strict=True):
                hosts[name] = workers[first + number].process_id
            first += count
    for name, worker in (spread or {}).items():
        hosts[cluster.find(name).name] = _worker(worker, name, workers).process_id
    return hosts


def _even(count: int, groups: int) -> list[int]:
    """The group of each of `count` things: consecutive, the first groups larger by one."""
    size, larger = divmod(count, groups)
    return [group for group in range(groups) for _ in range(size + (group < larger))]


def _shares(sizes: Sequence[int], workers: int) -> list[int]:
    """How many workers each task gets, at least one, at most one for each of its devices."""
    counts = [1] * len(sizes)
    for _ in range(workers - len(sizes)):
        crowded = max(range(len(sizes)), key=lambda task: sizes[task] / counts[task])
        if sizes[crowded] == counts[crowded]:
            break
        counts[crowded] += 1
    return counts


def _worker(wanted: str | int, device: str, workers: Sequence[NamedWorker]) -> NamedWorker:
    if isinstance(wanted, int) and not isinstance(wanted, bool) and 0 <= wanted < len(workers):
        return workers[wanted]
    for worker in workers:
        if wanted in (worker.name, worker.address):
            return worker
    if isinstance(wanted, int):
        raise InvalidArgumentError(f"spread={{{device!r}: {wanted!r}}}: there are workers 0 to {len(workers) - 1}")
    known = suggestion(str(wanted), [name for worker in workers for name in (worker.name, worker.address)])
    raise InvalidArgumentError(f"spread={{{device!r}: {wanted!r}}}: no worker has this name or address{known}")
