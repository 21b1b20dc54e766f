"""Opens the workers of a session in other processes, and refuses what cannot work there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import trio

from .....errors import InvalidArgumentError
from .....rendezvous import refuse_stale
from .remote_workers import RemoteWorkers
from .spread import spread_over
from .worker_member import WorkerPool

if TYPE_CHECKING:
    from distributed import Client

    from .....devices.cluster import Cluster
    from ...workers import WorkerSettings

GivenWorkers: TypeAlias = "str | Client | int | WorkerPool"
"""an address of a scheduler, a Client, a number of processes to start, or what gives connections in another way"""


async def open_remote_workers(
    workers: GivenWorkers,
    spread: Mapping[str, str | int] | None,
    heartbeat_s: float,
    cluster: Cluster,
    settings: WorkerSettings,
    *,
    is_distributed: bool,
) -> RemoteWorkers:
    """Connects to workers, and spreads the devices of `cluster` over them; see `open_session` for the arguments.

    Raises as `check_settings`, `connect_workers` and `spread_over`; UnavailableError if a worker cannot be reached.
    """
    check_settings(settings, heartbeat_s)
    pool = await _pool(workers, heartbeat_s)
    try:
        hosts = spread_over(cluster, list(pool.live.values()), spread)
        remote = RemoteWorkers(pool, cluster, hosts, settings, is_distributed=is_distributed)
        used = set(hosts.values())
        for worker in [worker for worker in pool.live.values() if worker.process_id in used]:
            await remote.connect(worker)
    except BaseException:
        with trio.CancelScope(shield=True):
            await pool.aclose()
        raise
    remote.arrange()
    return remote


async def _pool(workers: GivenWorkers, heartbeat_s: float) -> WorkerPool:
    if isinstance(workers, WorkerPool):
        return workers
    try:
        from ..client import connect_workers
    except ModuleNotFoundError as error:
        raise InvalidArgumentError(
            'workers=: sessions over worker processes need dask.distributed: pip install "partita[dask]"'
        ) from error
    return await connect_workers(workers, heartbeat_s=heartbeat_s)


def check_settings(settings: WorkerSettings, heartbeat_s: float) -> None:
    """InvalidArgumentError for settings that a session over worker processes does not honour."""
    if settings.costs is not None:
        raise InvalidArgumentError(
            'clock="virtual" with workers=: simulated time needs all devices in one process; leave workers= out'
        )
    if settings.policy is not refuse_stale:
        raise InvalidArgumentError(
            "policy= with workers=: a device in another process that has restarted is never received from; leave one "
            "of them out"
        )
    if not heartbeat_s > 0:
        raise InvalidArgumentError(f"heartbeat_s={heartbeat_s!r}: give the seconds after which a silent worker is lost")
