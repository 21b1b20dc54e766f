"""Worker processes in memory: hosts in tasks of the test's own event loop, with connections that encode every message.

    async with memory_workers(2) as pool:
        async with open_session(graph, "cpu:2", workers=pool) as session: ...

A pool stands in for `client.ConnectedWorkers`, a `MemoryWorker` for a process, which may host several sessions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio
import trio.testing

from partita.actors.sessions.processes.host import Host, serve
from partita.actors.sessions.processes.peers import ProcessConnection
from partita.devices.wire import WireMessage, decode, encode
from partita.errors import PartitaError, UnavailableError


class MemoryConnection:
    """One end of a connection; what is posted in a tick arrives in the next one, as bytes in between."""

    def __init__(self, process_id: str, address: str) -> None:
        self.process_id = process_id
        self.address = address
        self.is_over = False
        self.other: MemoryConnection | None = None
        self._token = trio.lowlevel.current_trio_token()
        self._outbox: list[WireMessage] = []
        self._inbox: list[WireMessage] = []
        self._error: PartitaError | None = None
        self._on_messages: Callable[[list[WireMessage]], None] | None = None
        self._on_lost: Callable[[PartitaError], None] | None = None

    def start(self, on_messages: Callable[[list[WireMessage]], None], on_lost: Callable[[PartitaError], None]) -> None:
        """As `Connection.start`."""
        self._on_messages, self._on_lost = on_messages, on_lost
        waiting, self._inbox = self._inbox, []
        if waiting:
            on_messages(waiting)
        if self._error is not None:
            on_lost(self._error)

    def post(self, message: WireMessage) -> None:
        """As `Connection.post`."""
        if not self.is_over:
            if not self._outbox:
                self._token.run_sync_soon(self._send)
            self._outbox.append(message)

    def _send(self) -> None:
        messages, self._outbox = self._outbox, []
        if messages and self.other is not None:
            self.other.deliver(decode(b"".join(encode(messages))))

    def connect(self, other: MemoryConnection) -> None:
        """The two ends of one connection."""
        self.other, other.other = other, self
        self._send()
        other._send()

    def deliver(self, messages: list[WireMessage]) -> None:
        """Messages have arrived."""
        if self.is_over:
            return
        if self._on_messages is None:
            self._inbox += messages
        else:
            self._on_messages(messages)

    async def aclose(self, reason: str = "") -> None:
        """As `Connection.aclose`."""
        self._send()
        self.abort()

    def abort(self) -> None:
        """As `Connection.abort`."""
        self.is_over = True
        other, self.other = self.other, None
        if other is not None:
            self._token.run_sync_soon(other.lose, UnavailableError("the connection was closed"))

    def lose(self, error: PartitaError) -> None:
        """The other side is gone."""
        if not self.is_over:
            self.is_over = True
            self.other = None
            self._error = error
            if self._on_lost is not None:
                self._on_lost(error)


class WatchedHost(Host):
    """A host that its worker knows."""

    def __init__(self, connection: ProcessConnection, node: MemoryNode, nursery: trio.Nursery) -> None:
        super().__init__(connection, node, nursery)
        node.worker.hosts.append(self)

    def assert_idle(self) -> None:
        """No step is known, and nothing waits or is on its way."""
        assert not self.steps
        assert not len(self._tables)
        assert not self._traffic
        assert not self._early
        for peer in self.peers.by_process.values():
            statistics = peer.exchange.statistics()
            assert (statistics.waiting, statistics.asked) == (0, 0)


class MemoryNode:
    """One session in a worker; the `HostNode` of its host."""

    def __init__(self, worker: MemoryWorker, pool: MemoryPool) -> None:
        self.worker = worker
        self.process_id = worker.process_id
        self.is_retiring = False
        self.on_retire: Callable[[], None] | None = None
        self.peers: dict[str, MemoryConnection] = {}
        self.ends: list[MemoryConnection] = []
        self.scope = trio.CancelScope()
        self._pool = pool

    def end(self, process_id: str, address: str) -> MemoryConnection:
        """One more end of a connection."""
        made = MemoryConnection(process_id, address)
        self.ends.append(made)
        return made

    def connection_to(self, process_id: str, address: str) -> MemoryConnection:
        """As `WorkerNode.connection_to`."""
        known = self.peers.get(process_id)
        if known is not None and not known.is_over:
            return known
        here = self.peers[process_id] = self.end(process_id, address)
        there = self._pool.node(process_id)
        if there.worker.is_dead:
            trio.lowlevel.current_trio_token().run_sync_soon(here.lose, UnavailableError("connection refused"))
            return here
        their = there.peers.get(self.process_id)
        if their is None or their.is_over or their.other is not None:
            their = there.peers[self.process_id] = there.end(self.process_id, self.worker.address)
        here.connect(their)
        return here

    async def host(self, connection: MemoryConnection) -> None:
        """The task of the host."""
        with self.scope:
            await serve(connection, self, WatchedHost)
        for end in self.ends:
            await end.aclose()

    def retire(self) -> None:
        """dask closes the worker."""
        self.is_retiring = True
        if self.on_retire is not None:
            self.on_retire()

    def kill(self) -> None:
        """All connections break."""
        for end in self.ends:
            other, end.other = end.other, None
            end.is_over = True
            if other is not None:
                other.other = None
                other.lose(UnavailableError("the connection broke"))
        self.scope.cancel()

    def cut(self, process: str) -> None:
        """The connection to another worker breaks, at both ends."""
        here = self.peers[process]
        there, here.other = here.other, None
        here.lose(UnavailableError("the connection broke"))
        if there is not None:
            there.other = None
            there.lose(UnavailableError("the connection broke"))


@dataclass(eq=False)
class MemoryWorker:
    """A worker process; a `NamedWorker`. `hosts` are those of all sessions, `nodes` those that were opened last."""

    process_id: str
    is_dead: bool = False
    nodes: list[MemoryNode] = field(default_factory=list)
    hosts: list[WatchedHost] = field(default_factory=list)

    @property
    def name(self) -> str:
        """As dask calls it."""
        return self.process_id.removeprefix("process-")

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"memory://{self.name}"


class MemoryPool:
    """Workers in memory, for one session; a `WorkerPool`."""

    def __init__(self, count: int, nursery: trio.Nursery, workers: dict[str, MemoryWorker] | None = None) -> None:
        self.workers: dict[str, MemoryWorker] = {} if workers is None else workers
        self.live: dict[str, MemoryWorker] = dict(self.workers)
        self.error: PartitaError | None = None
        self._nodes: dict[str, MemoryNode] = {}
        self._nursery = nursery
        self._changed = trio.Event()
        self._ends: list[MemoryConnection] = []
        for _ in range(count):
            self.add()

    def add(self) -> MemoryWorker:
        """One more worker joins."""
        process = f"process-{len(self.workers)}"
        self.workers[process] = self.live[process] = worker = MemoryWorker(process)
        self._tell_changed()
        return worker

    def again(self) -> MemoryPool:
        """The same workers, for another session."""
        return MemoryPool(0, self._nursery, self.workers)

    def node(self, process: str) -> MemoryNode:
        """The session in a worker."""
        known = self._nodes.get(process)
        if known is None:
            known = self._nodes[process] = MemoryNode(self.workers[process], self)
        return known

    def kill(self, process: str) -> None:
        """As kill -9: all connections break, and nothing of the worker is heard any more."""
        self.workers[process].is_dead = True
        self._leave(process)
        self.node(process).kill()

    def retire(self, process: str) -> None:
        """As dask does."""
        self._leave(process)
        self.node(process).retire()

    def end(self, error: PartitaError) -> None:
        """No worker will ever join."""
        self.error = error
        self._tell_changed()

    def _leave(self, process: str) -> None:
        self.live.pop(process, None)
        self._tell_changed()

    def _tell_changed(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def assert_idle(self) -> None:
        """Nothing is left of any step in the workers that live."""
        await trio.testing.wait_all_tasks_blocked()
        for worker in self.live.values():
            for host in worker.hosts:
                host.assert_idle()

    async def open(self, worker: MemoryWorker) -> MemoryConnection:
        """As `ConnectedWorkers.open`."""
        await trio.lowlevel.checkpoint()
        if worker.is_dead:
            raise UnavailableError("connection refused")
        known = self._nodes.get(worker.process_id)
        if known is not None and known.ends and known.ends[0].is_over:
            del self._nodes[worker.process_id]
        here, node = MemoryConnection(worker.process_id, worker.address), self.node(worker.process_id)
        there = node.end("session", "")
        here.connect(there)
        self._ends.append(here)
        self._nursery.start_soon(node.host, there)
        return here

    async def changed(self) -> None:
        """As `ConnectedWorkers.changed`."""
        await self._changed.wait()

    async def aclose(self) -> None:
        """As `ConnectedWorkers.aclose`."""
        for end in self._ends:
            await end.aclose()


@asynccontextmanager
async def memory_workers(count: int) -> AsyncIterator[MemoryPool]:
    """Some workers, which end with the block."""
    async with trio.open_nursery() as nursery:
        yield MemoryPool(count, nursery)
