"""Whether the devices of a session live in worker processes: what `workers=`, `spread=` and `heartbeat_s=` say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ....errors import InvalidArgumentError
from ..lifetime import session_closed

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ..processes.session.opening import GivenWorkers
    from ..worker_protocol import SessionWorkers
    from ..workers import WorkerSettings

DEFAULT_HEARTBEAT_S = 5.0
_Made = TypeVar("_Made")


class RemotePlaces(NamedTuple):
    """What a caller says of worker processes; see `open_session`."""

    workers: GivenWorkers | None
    spread: Mapping[str, str | int] | None
    heartbeat_s: float

    async def open(
        self,
        make: Callable[[Cluster, SessionWorkers | None], Awaitable[_Made]],
        cluster: Cluster,
        settings: WorkerSettings,
        *,
        is_distributed: bool,
    ) -> _Made:
        """What `make` makes with the workers, None for those of this process, and with the devices as they have them.

        Raises InvalidArgumentError for `spread` without `workers`, else as `open_remote_workers` and `make`.
        """
        if self.workers is None:
            if self.spread is not None:
                raise InvalidArgumentError("spread= says which worker hosts a device; give workers=, too")
            return await make(cluster, None)
        from ..processes.session.opening import open_remote_workers  # sessions of one process need none of it

        workers = await open_remote_workers(*self, cluster, settings, is_distributed=is_distributed)
        try:
            return await make(workers.cluster, workers)
        except BaseException:
            await workers.abandon(session_closed())
            raise
