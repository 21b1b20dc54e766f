"""The way to one other process, as trio sees it: messages are posted, arrive in lists, and the end is told once.

    connection.start(on_messages, on_lost)
    connection.post(WireMessage({"op": "ask", "step": 3}, []))

All posts of one trio tick travel in one write. Messages arrive in the order in which they were posted. What is posted
before the processes are connected waits, and so does what arrives before `start`. All methods are called, and all
callbacks made, in the thread of trio.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from ....devices.wire import WireMessage
from ....errors import InternalError, PartitaError
from .bridge import LoopBridge
from .link import CommLink


class Connection:
    """Messages to and from one other process; `ConnectedWorkers.open` and `WorkerNode.connection_to` make it."""

    def __init__(self, bridge: LoopBridge, process_id: str, address: str) -> None:
        self.process_id = process_id  # of the other process
        self.address = address  # of the worker there; "" for the process of a session
        self.sent = 0  # messages posted
        self.received = 0  # messages handed to `on_messages`
        self.is_over = False
        self._bridge = bridge
        self._link: CommLink | None = None
        self._outbox: list[WireMessage] = []
        self._tick = -1  # of the bridge, when the outbox was begun
        self._inbox: list[WireMessage] = []
        self._on_messages: Callable[[list[WireMessage]], None] | None = None
        self._on_lost: Callable[[PartitaError], None] | None = None
        self._error: PartitaError | None = None

    def start(self, on_messages: Callable[[list[WireMessage]], None], on_lost: Callable[[PartitaError], None]) -> None:
        """Says who gets what arrives, and who hears that the connection has ended, once, after the last message.

        `on_lost` gets UnavailableError if the other process ended, closed the connection or fell silent, and
        DataLossError if what came was no message. It is not called after `aclose` or `abort` here. What has happened
        already is told before this returns.
        """
        self._on_messages, self._on_lost = on_messages, on_lost
        waiting, self._inbox = self._inbox, []
        if waiting:
            self._hand_on(waiting)
        if self._error is not None:
            on_lost(self._error)

    def post(self, message: WireMessage) -> None:
        """Sends a message; returns at once. Dropped if the connection has ended."""
        if self.is_over:
            return
        self.sent += 1
        if self._link is None:
            self._outbox.append(message)
        elif self._tick == self._bridge.tick:
            self._outbox.append(message)  # what was begun in this tick is not sent yet
        else:
            self._outbox = [message]
            self._send(self._link)

    def _send(self, link: CommLink) -> None:
        self._tick = self._bridge.tick
        self._bridge.to_loop(link.send, self._outbox)

    @trio.lowlevel.enable_ki_protection
    async def aclose(self, reason: str = "") -> None:
        """Writes what was posted, and closes; returns when that is done, or the other side does not read."""
        link, self.is_over = self._link, True
        if link is not None:
            with trio.CancelScope(shield=True):
                await self._bridge.run(link.close, reason)

    def abort(self) -> None:
        """Closes without writing what waits."""
        self.is_over = True
        if self._link is not None:
            self._bridge.to_loop(self._link.abort)

    def attach(self, link: CommLink) -> None:
        """The processes are connected."""
        link.attach(self)
        if self.is_over:
            self._bridge.to_loop(link.abort)
            return
        self._link = link
        if self._outbox:
            self._send(link)

    def deliver(self, messages: list[WireMessage]) -> None:
        """Messages have arrived."""
        if self._on_messages is None:
            self._inbox += messages
        elif not self.is_over:
            self._hand_on(messages)

    def _hand_on(self, messages: list[WireMessage]) -> None:
        """Gives messages to the user; an exception of the user ends this connection, not the run of trio."""
        assert self._on_messages is not None
        self.received += len(messages)
        try:
            self._on_messages(messages)
        except Exception as error:  # noqa: BLE001 - of the user
            ended = error if isinstance(error, PartitaError) else _wrapped(error)
            if self._link is not None:
                self._bridge.to_loop(self._link.close_soon, "a message could not be handled")
            self.lose(ended)

    def lose(self, error: PartitaError) -> None:
        """The connection has ended, and not from this side."""
        if not self.is_over:
            self.is_over = True
            self._error = error
            if self._on_lost is not None:
                self._on_lost(error)

    @property
    def is_attached(self) -> bool:
        """Whether the processes have been connected."""
        return self._link is not None


def _wrapped(error: Exception) -> PartitaError:
    wrapped = InternalError(f"a message could not be handled: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
