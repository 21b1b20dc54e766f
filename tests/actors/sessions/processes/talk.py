"""A session of these tests: workers that answer as echo.py says, and one conversation with each."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import numpy as np
import trio

from partita.devices.wire import WireMessage
from partita.errors import PartitaError

if TYPE_CHECKING:
    from distributed import Client

    from partita.actors.sessions.processes.client import ConnectedWorkers, LiveWorker
    from partita.actors.sessions.processes.connection import Connection

HOST = "tests.actors.sessions.processes.echo:serve"


RELEASED = threading.Event()


def release() -> None:
    """Ends a `block` of echo.py, in the process that calls this."""
    RELEASED.set()


def message(op: str, *tensors: np.ndarray | np.generic, **header: object) -> WireMessage:
    """A message to echo.py."""
    return WireMessage({"op": op, **header}, list(tensors))


class Talk:
    """What comes over one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.batches: list[int] = []  # messages that came at once
        self._messages: list[WireMessage] = []
        self.error: PartitaError | None = None
        self._news = trio.Event()
        connection.start(self._hear, self._lose)

    def _hear(self, messages: list[WireMessage]) -> None:
        self.batches.append(len(messages))
        self._messages += messages
        self._tell()

    def _lose(self, error: PartitaError) -> None:
        assert self.error is None
        self.error = error
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()

    def post(self, *messages: WireMessage) -> None:
        """Sends messages in one tick."""
        for each in messages:
            self.connection.post(each)

    async def hear(self, count: int = 1) -> list[WireMessage]:
        """The next `count` messages."""
        while len(self._messages) < count:
            assert self.error is None, self.error
            await self._news.wait()
        messages, self._messages = self._messages[:count], self._messages[count:]
        return messages

    async def lost(self) -> PartitaError:
        """Why the connection ended; waits for that."""
        while self.error is None:
            await self._news.wait()
        return self.error


@asynccontextmanager
async def connected(workers: str | Client | int, *, heartbeat_s: float = 5.0) -> AsyncIterator[ConnectedWorkers]:
    """Workers that echo.py serves, both of the fixture `cluster`."""
    from partita.actors.sessions.processes.client import connect_workers
    from partita.actors.sessions.processes.plugin import PartitaPlugin

    plugin = PartitaPlugin("partita-echo", HOST)
    opened = await connect_workers(workers, heartbeat_s=heartbeat_s, plugin=plugin)
    try:
        yield opened
    finally:
        await opened.aclose()


async def two(opened: ConnectedWorkers) -> list[LiveWorker]:
    """Two live workers; waits for one that is being started again."""
    while len(opened.live) < 2:
        await opened.changed()
    return list(opened.live.values())
