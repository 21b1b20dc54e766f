"""A dask client of a session's own, and the processes that were started for it; see client.py for why.

Making one and closing it block: call them in a thread. The other methods are awaited in the client's loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from distributed import Client, LocalCluster
from distributed.comm import connect, get_address_host_port, parse_address
from distributed.security import Security

from ....errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
    UnimplementedError,
    shown,
)
from .local_cluster import start_local_cluster
from .plugin import PartitaPlugin
from .probing import check_workers
from .versions import about_worker

_logger = logging.getLogger(__name__)
_CONNECT_S = 10.0
_CLOSE_S = 10.0
_END_S = 30.0  # for processes, which dask asks to end, and kills 4 s later; a busy machine takes its time
_LOOK_S = 1.0  # between two looks at whether dask has given the scheduler up, of which it tells nobody
_EVENTS = "all"  # the topic in which the scheduler says that workers join and leave


class DaskClient:
    """A client that nobody else uses."""

    def __init__(self, workers: str | Client | int) -> None:
        """Connects, or starts processes; blocks. Raises as `connect_workers`."""
        self._local: LocalCluster | None = None
        self._looking: asyncio.Task[None] | None = None  # asyncio forgets tasks that nobody holds
        if isinstance(workers, int) and not isinstance(workers, bool):
            self._local = start_local_cluster(workers)
            self.address, security = self._local.scheduler_address, Security(require_encryption=False)
        else:
            self.address, security = _scheduler_of(workers)
        try:
            self._client = Client(
                self.address, security=security, timeout=_CONNECT_S, set_as_default=False, name="partita-session"
            )
        except Exception as error:
            self._close_local()
            raise _silent(self.address, error) from error
        self.loop = cast(asyncio.AbstractEventLoop, self._client.loop.asyncio_loop)
        self.connection_args = cast(Mapping[str, object], self._client.connection_args)

    def close(self) -> None:
        """Disconnects, and ends the processes that were started; blocks."""
        if self._looking is not None:
            self.loop.call_soon_threadsafe(self._looking.cancel)
            if self._client.status == "running":  # dask closes it when the scheduler is gone
                self._client.unsubscribe_topic(_EVENTS)  # or the scheduler complains that it cannot send the next one
        try:
            self._client.close(timeout=_CLOSE_S)
        except TimeoutError:
            _logger.warning("the dask scheduler at %s has not answered for %g s; it is left", self.address, _CLOSE_S)
        self._close_local()

    def _close_local(self) -> None:
        if self._local is not None:
            try:
                self._local.close(timeout=_END_S)
            except TimeoutError:
                _logger.warning("worker processes have not ended after %g s; they end with this one", _END_S)

    async def install(self, plugin: PartitaPlugin) -> None:
        """Checks the versions of all workers and registers the plugin.

        Raises UnavailableError if there is no worker, FailedPreconditionError if one has other versions.
        """
        try:
            await self._client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError:
            raise UnavailableError(f"the cluster at {self.address} has no worker") from None
        await check_workers(self._client.run)
        try:
            await self._client.register_plugin(plugin)
        except Exception as error:
            raise FailedPreconditionError(
                f"the workers cannot load {type(plugin).__name__}: {type(error).__name__}: {error}"
            ) from error

    async def check(self, address: str) -> None:
        """Raises FailedPreconditionError if a worker has other versions."""
        await check_workers(self._client.run, [address])

    async def about(self, workers: Sequence[str] | None = None) -> dict[str, Mapping[str, object]]:
        """What workers that have Partita say of themselves, by address; those that leave meanwhile are left out."""
        answers: Mapping[str, object] = await self._client.run(about_worker, workers=workers, on_error="return")
        return {address: answer for address, answer in answers.items() if isinstance(answer, dict)}

    def watch(self, joined: Callable[[str], object], left: Callable[[str], object], gone: Callable[[], object]) -> None:
        """Calls `joined` and `left` with the addresses of workers, in the loop, from now on; `gone` when the scheduler
        is, some 10 s after it has been heard of last."""

        def on_event(event: tuple[float, Mapping[str, str]]) -> None:
            _, said = event
            if said.get("action") == "add-worker":
                joined(said["worker"])
            elif said.get("action") == "remove-worker":
                left(said["worker"])

        self._client.subscribe_topic(_EVENTS, on_event)
        self._looking = asyncio.ensure_future(self._look(gone))

    async def _look(self, gone: Callable[[], object]) -> None:
        while self._client.status in ("running", "connecting"):  # noqa: ASYNC110 - dask has no event for it
            await asyncio.sleep(_LOOK_S)
        gone()


def _scheduler_of(workers: object) -> tuple[str, Security]:
    """The address of a scheduler that answers, and how to connect to it. Raises as `connect_workers`."""
    if isinstance(workers, Client):
        if workers.status != "running" or workers.scheduler is None:
            raise FailedPreconditionError(f"workers={workers!r}: the client is {workers.status}")
        address, security = cast(str, workers.scheduler.address), workers.security
    elif isinstance(workers, str):
        address, security = workers, Security()  # as dask's configuration says
    else:
        raise InvalidArgumentError(
            f"workers={shown(workers)}: give the address of a dask scheduler, a distributed.Client or a number"
        )
    # A Client whose constructor fails leaves a thread behind, and complains when it is collected.
    asyncio.run(_check_scheduler(address, security.get_connection_args("client")))
    return address, security


async def _check_scheduler(address: str, connection_args: Mapping[str, object]) -> None:
    """Raises unless something listens at an address."""
    try:
        scheme, _ = parse_address(address)
        if scheme in ("tcp", "tls"):
            get_address_host_port(address)
    except ValueError as error:
        raise InvalidArgumentError(f"workers={address!r} is no address of a dask scheduler: {error}") from error
    if scheme not in ("tcp", "tls"):
        raise UnimplementedError(
            f"workers={address!r}: processes are reached over tcp:// or tls://; start the cluster with one of them"
        )
    if scheme == "tls" and connection_args.get("ssl_context") is None:
        raise FailedPreconditionError(
            f"workers={address!r} needs certificates: give a Client that has its `security`, or set dask's "
            "configuration distributed.comm.tls"
        )
    try:
        comm = await connect(address, timeout=_CONNECT_S, **connection_args)
    except (OSError, TimeoutError) as error:
        raise _silent(address, error) from error
    comm.abort()


def _silent(address: str, error: Exception) -> UnavailableError:
    return UnavailableError(f"no dask scheduler answers at {address!r}: {type(error).__name__}: {error}")
