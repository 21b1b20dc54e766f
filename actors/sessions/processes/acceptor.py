"""What a worker does in the loop of dask: takes comms over, connects to other workers, and starts the trio thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ....errors import PartitaError, UnavailableError
from .connection import Connection
from .framing import FramedStream
from .greeting import Greeting, dial, read_greeting
from .link import CommLink
from .node import HostedSessions, Serve
from .trio_thread import TrioThread
from .versions import about, process_id

if TYPE_CHECKING:
    from distributed import Worker
    from distributed.comm import Comm

_DRAIN_S = 30.0  # how long the steps of sessions may hold up the close of a worker that dask retires

_logger = logging.getLogger(__name__)


class Acceptor:
    """The sessions of one worker, seen from dask's loop; all methods are called there."""

    def __init__(self, worker: Worker, op: str, load: Callable[[], Serve]) -> None:
        """`op` names the handler; `load` imports what serves a session."""
        self._worker = worker
        self._op = op
        self._load = load
        self._thread: TrioThread[HostedSessions] | None = None
        self._dialling: set[asyncio.Task[None]] = set()

    async def accept(self, comm: Comm, **message: object) -> None:
        """Handler of dask: takes the comm over until one of the two sides closes it."""
        try:
            stream = FramedStream(comm)
            stream.write_hello(about())  # first, so that a session of another version can say so
            greeting = read_greeting(message)
        except PartitaError as error:
            _logger.warning("refused a connection from %s: %s", comm.peer_address, error)
            comm.abort()
            return
        if self._thread is None:
            self._thread = TrioThread(lambda bridge, nursery: HostedSessions(self._load, bridge, nursery, self._dial))
        bridge, hosted = await self._thread.opened()
        link = CommLink(stream, bridge, greeting.whom, heartbeat_s=greeting.heartbeat_s, is_watched=False)
        own = Greeting(greeting.session_id, process_id(), self._worker.address, greeting.heartbeat_s)
        bridge.to_trio(hosted.accept, greeting, own, link)
        await link.run()

    def _dial(self, greeting: Greeting, connection: Connection) -> None:
        """Connects to another worker."""
        task = asyncio.ensure_future(self._connect(greeting, connection))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)

    async def _connect(self, greeting: Greeting, connection: Connection) -> None:
        assert self._thread is not None  # a session has asked for it
        bridge, _ = await self._thread.opened()
        try:
            stream, answer = await dial(connection.address, self._op, greeting, self._worker.connection_args)
        except PartitaError as error:
            bridge.to_trio(connection.lose, error)
            return
        if answer.get("process_id") != connection.process_id:
            stream.abort()
            wrong = f"at {connection.address} there is another process than {connection.process_id}: it was restarted"
            bridge.to_trio(connection.lose, UnavailableError(wrong))
            return
        whom = f"the worker at {connection.address}"
        link = CommLink(stream, bridge, whom, heartbeat_s=greeting.heartbeat_s, is_watched=True)
        bridge.to_trio(connection.attach, link)
        await link.run()

    async def aclose(self) -> None:
        """Waits until the sessions have left the worker, for a time; then ends them and the trio thread."""
        if self._thread is None:
            return
        bridge, hosted = await self._thread.opened()
        left = asyncio.Event()
        bridge.to_trio(hosted.retire, lambda: bridge.to_loop(left.set))
        try:
            await asyncio.wait_for(left.wait(), _DRAIN_S)
        except TimeoutError:
            _logger.warning("sessions still use the worker at %s after %g s", self._worker.address, _DRAIN_S)
        await self._thread.aclose()
        for task in list(self._dialling):
            task.cancel()
