"""The live workers of a cluster, as a session sees them, and connections to them.

A session never uses the client it is given, but one more to the same scheduler: a client has one handler for each topic
of events, may belong to an asyncio loop that must not wait, and may be closed before the session. dask's events say
when workers join and leave; one that joins is asked for its versions, as all are at the start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import trio

from ....errors import FailedPreconditionError, InvalidArgumentError, PartitaError, UnavailableError, shown
from .bridge import LoopBridge
from .connection import Connection
from .dask_client import DaskClient
from .greeting import Greeting, dial
from .link import CommLink
from .plugin import PartitaPlugin
from .versions import check, process_id

if TYPE_CHECKING:
    from distributed import Client

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LiveWorker:
    """A worker process that can host devices."""

    process_id: str  # 32 hex digits, made when the process first needs it
    address: str  # where its worker listens: tcp://127.0.0.1:40017
    name: str  # as dask calls it
    pid: int  # on its host


class ConnectedWorkers:
    """The workers that are live now, and connections to them; `connect_workers` makes it. Close it with `aclose`."""

    def __init__(self, dask: DaskClient, plugin: PartitaPlugin, heartbeat_s: float) -> None:
        self.session_id = uuid4().hex
        self.live: dict[str, LiveWorker] = {}  # by process id, in the order of their names
        self.error: UnavailableError | None = None  # why none will ever join
        self._dask = dask
        self._plugin = plugin
        self._bridge = LoopBridge(dask.loop)
        self._greeting = Greeting(self.session_id, process_id(), "", heartbeat_s)
        self._changed = trio.Event()
        self._connections: list[Connection] = []
        self._tasks: set[asyncio.Task[None]] = set()  # of the loop, which forgets tasks that nobody holds

    async def open(self, worker: LiveWorker) -> Connection:
        """Connects this session to a worker, whose `serve` gets the other end.

        Raises UnavailableError if it cannot be reached, FailedPreconditionError if its versions are others.
        """
        link = await self._bridge.run(self._dial, worker)
        connection = Connection(self._bridge, worker.process_id, worker.address)
        connection.attach(link)
        self._connections = [each for each in self._connections if not each.is_over] + [connection]
        return connection

    async def changed(self) -> None:
        """Waits until `live` or `error` changes."""
        await self._changed.wait()

    async def aclose(self) -> None:
        """Closes the connections that are open, the client, and the processes that were started for the session."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as closing:
                for connection in self._connections:
                    closing.start_soon(connection.aclose)
            await trio.to_thread.run_sync(self._dask.close)

    async def find_workers(self) -> None:
        """Checks the workers, registers the plugin, and follows what changes. Raises as `connect_workers`."""
        workers = await self._bridge.run(self._install)
        self.live = {worker.process_id: worker for worker in workers}
        if len(self.live) < len(workers) or process_id() in self.live:
            raise FailedPreconditionError(
                f"the workers at {self._dask.address} share a process: start each in one of its own (LocalCluster has "
                "processes=True for that)"
            )
        if not self.live:
            raise UnavailableError(f"the cluster at {self._dask.address} has no worker that answers")

    async def _install(self) -> list[LiveWorker]:
        await self._dask.install(self._plugin)
        to_trio = self._bridge.to_trio
        self._dask.watch(
            self._hear_joined, lambda address: to_trio(self._leave, address), lambda: to_trio(self._lose_scheduler)
        )
        return await self._ask()

    async def _ask(self, addresses: Sequence[str] | None = None) -> list[LiveWorker]:
        answers = await self._dask.about(addresses)
        return sorted((_live(*answer) for answer in answers.items()), key=lambda worker: _order(worker.name))

    async def _dial(self, worker: LiveWorker) -> CommLink:
        """In the loop: connects, and begins to read."""
        stream, answer = await dial(worker.address, self._plugin.op, self._greeting, self._dask.connection_args)
        whom = f"worker {worker.name} at {worker.address}"
        try:
            check(f"{worker.name} at {worker.address}", cast(Mapping[str, str], answer["versions"]))
            if answer["process_id"] != worker.process_id:
                raise UnavailableError(f"the process of {whom} has been restarted")
        except PartitaError:
            stream.abort()
            raise
        link = CommLink(stream, self._bridge, whom, heartbeat_s=self._greeting.heartbeat_s, is_watched=True)
        self._keep(asyncio.ensure_future(link.run()))
        return link

    def _hear_joined(self, address: str) -> None:
        """In the loop: dask says that a worker has joined."""
        self._keep(asyncio.ensure_future(self._ask_joined(address)))

    async def _ask_joined(self, address: str) -> None:
        try:
            await self._dask.check(address)
            for worker in await self._ask([address]):
                self._bridge.to_trio(self._join, worker)
        except PartitaError as error:
            _logger.warning("a worker that joined is not used: %s", error)
        except OSError as error:
            _logger.debug("a worker that joined has left again: %s", error)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _join(self, worker: LiveWorker) -> None:
        if worker.process_id not in self.live:
            workers = sorted([*self.live.values(), worker], key=lambda each: _order(each.name))
            self._set({each.process_id: each for each in workers})

    def _leave(self, address: str) -> None:
        left = {key: worker for key, worker in self.live.items() if worker.address != address}
        if len(left) < len(self.live):
            self._set(left)

    def _lose_scheduler(self) -> None:
        self.error = UnavailableError(
            f"the dask scheduler at {self._dask.address} is gone, so no worker can take the place of those that are "
            "lost: start a cluster, and open a session there"
        )
        self._set({})

    def _set(self, live: dict[str, LiveWorker]) -> None:
        self.live = live
        changed, self._changed = self._changed, trio.Event()
        changed.set()


async def connect_workers(
    workers: str | Client | int, *, heartbeat_s: float = 5.0, plugin: PartitaPlugin | None = None
) -> ConnectedWorkers:
    """The workers of a scheduler's address, of a Client, or of as many new processes on this machine.

    A connection is lost after `heartbeat_s` without a sign of life. Raises InvalidArgumentError for anything else and
    for a heartbeat that is not above 0; UnavailableError if nothing answers there or no worker is live;
    FailedPreconditionError if a worker has other versions (see versions.py), or none of this package.
    """
    if not 0 < heartbeat_s < inf:
        raise InvalidArgumentError(f"heartbeat_s={shown(heartbeat_s)}: give seconds above 0")
    dask = await trio.to_thread.run_sync(DaskClient, workers)
    connected = ConnectedWorkers(dask, plugin or PartitaPlugin(), float(heartbeat_s))
    try:
        await connected.find_workers()
    except BaseException:
        await connected.aclose()
        raise
    return connected


def _live(address: str, about: Mapping[str, object]) -> LiveWorker:
    return LiveWorker(str(about["process_id"]), address, str(about["name"]), cast(int, about["pid"]))


def _order(name: str) -> tuple[int, int, str]:
    """Numbers first, as numbers."""
    return (0, int(name), name) if name.isdecimal() else (1, 0, name)
