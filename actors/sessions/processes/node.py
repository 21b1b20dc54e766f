"""One session in one worker: what `serve` gets from the plugin.

    async def serve(connection: Connection, node: WorkerNode) -> None:      (host.py)

runs in the trio thread of the worker, one task for each session that connects. When it returns, or raises, the
connection and those to other workers are closed; it is cancelled when the worker closes.

Workers are connected on behalf of a session, so two sessions over the same workers do not see each other's messages. Of
two processes the one with the smaller id connects, so that there is one connection and not two.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace

import trio

from ....errors import UnavailableError
from .bridge import LoopBridge
from .connection import Connection
from .greeting import Greeting
from .link import CommLink

Serve = Callable[["Connection", "WorkerNode"], Awaitable[None]]
_Peers = dict[str, Connection]

_logger = logging.getLogger(__name__)


class WorkerNode:
    """A worker process as one session uses it; in the thread of trio."""

    def __init__(self, greeting: Greeting, peers: _Peers, bridge: LoopBridge, dial: Dial) -> None:
        """`greeting` is that with which this worker connects to others on behalf of the session."""
        self.process_id = greeting.process_id
        self.address = greeting.address  # of this worker
        self.session_id = greeting.session_id
        self.on_retire: Callable[[], None] | None = None  # called once if dask closes the worker; it waits for `serve`
        self.is_retiring = False
        self.scope = trio.CancelScope()  # around `serve`
        self._greeting = greeting
        self._peers = peers  # by process id; those that have connected are here before they are asked for
        self._bridge = bridge
        self._dial = dial

    def connection_to(self, process_id: str, address: str) -> Connection:
        """The connection of this session to another worker: the same object until it has ended, then a new one.

        It connects meanwhile; what is posted waits until then. `on_lost` tells if the other worker cannot be reached.
        """
        known = self._peers.get(process_id)
        if known is not None and not known.is_over:
            return known
        self._peers[process_id] = connection = Connection(self._bridge, process_id, address)
        if self.process_id < process_id:
            self._bridge.to_loop(self._dial, self._greeting, connection)
        return connection

    def retire(self) -> None:
        """dask closes the worker: ends a `serve` that does not want to know."""
        self.is_retiring = True
        if self.on_retire is None:
            self.scope.cancel()
        else:
            self.on_retire()


Dial = Callable[[Greeting, Connection], object]


class HostedSessions:
    """The sessions that a worker takes part in; in the thread of trio."""

    def __init__(self, load: Callable[[], Serve], bridge: LoopBridge, nursery: trio.Nursery, dial: Dial) -> None:
        """`load` imports what serves a session, when the first one comes."""
        self._load = load
        self._bridge = bridge
        self._nursery = nursery
        self._dial = dial
        self._nodes: dict[str, WorkerNode] = {}
        self._closing = 0  # sessions whose connections are being closed
        self._peers: defaultdict[str, _Peers] = defaultdict(dict)  # by session, also of those that come yet
        self._when_left: Callable[[], object] | None = None  # once the worker retires

    def accept(self, greeting: Greeting, own: Greeting, link: CommLink) -> None:
        """A session, or another worker on behalf of one, has connected. `own` is how this worker greets others."""
        connection = Connection(self._bridge, greeting.process_id, greeting.address)
        if greeting.address:
            self._accept_peer(self._peers[greeting.session_id], greeting, connection).attach(link)
            return
        connection.attach(link)
        own = replace(own, session_id=greeting.session_id, heartbeat_s=greeting.heartbeat_s)
        self._nursery.start_soon(self._host, connection, own, name=f"partita session {greeting.session_id}")

    def _accept_peer(self, peers: _Peers, greeting: Greeting, new: Connection) -> Connection:
        """The connection that has waited for this one, or a new one."""
        known = peers.get(greeting.process_id)
        if known is not None and not known.is_over:
            if not known.is_attached:
                return known
            known.lose(UnavailableError(f"{greeting.whom} has connected again"))
        peers[greeting.process_id] = new
        return new

    @trio.lowlevel.enable_ki_protection
    async def _host(self, connection: Connection, own: Greeting) -> None:
        """Serves one session to its end, and closes its connections."""
        if own.session_id in self._nodes or self._when_left is not None:
            await connection.aclose("it closes" if self._when_left else "the session is connected to it already")
            return
        node = WorkerNode(own, self._peers[own.session_id], self._bridge, self._dial)
        self._nodes[own.session_id] = node
        reason = "it closes"
        try:
            with node.scope:
                await self._load()(connection, node)
                reason = ""
        except Exception as error:
            _logger.exception("a session ended with an error in the worker at %s", node.address)
            reason = f"{type(error).__name__}: {error}"
        finally:
            del self._nodes[own.session_id]  # before the session hears of it, because it may connect again
            self._closing += 1
            async with trio.open_nursery() as closing:
                for each in [connection, *self._peers.pop(own.session_id, {}).values()]:
                    closing.start_soon(each.aclose, reason)
            self._closing -= 1
            self._tell_left()

    def retire(self, when_left: Callable[[], object]) -> None:
        """Tells all sessions that dask closes the worker, and calls `when_left` when all of them have left it."""
        self._when_left = when_left
        for node in self._nodes.values():
            node.retire()
        self._tell_left()

    def _tell_left(self) -> None:
        if not self._nodes and not self._closing and self._when_left is not None:
            self._when_left()
