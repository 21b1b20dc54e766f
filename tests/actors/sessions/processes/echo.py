"""What serves sessions in the workers of these tests. It does what the `op` of a message says:

echo     the message comes back
expect   the worker `to` will send something
relay    it goes on to the worker `to` `at` an address, which sends it back, and comes back
where    the process comes back: its number, the id of the process, and the names of its threads
block    the thread of trio does nothing else until dask calls `release`
mute     writes what is no message to the stream
leave    the session is ended from here
fail     serving ends with an error
bad      what handles the message raises an error
retire   how a worker that dask closes is left: the session is told `retiring`, and may go on until it closes
"""

from __future__ import annotations

import os
import struct
import threading

import trio
from distributed.protocol import dumps
from distributed.protocol.serialize import ToPickle
from distributed.protocol.utils import pack_frames_prelude

from partita.actors.sessions.processes.connection import Connection
from partita.actors.sessions.processes.link import CommLink
from partita.actors.sessions.processes.node import WorkerNode
from partita.devices.wire import WireMessage
from partita.errors import FailedPreconditionError, PartitaError
from tests.actors.sessions.processes.talk import RELEASED


async def serve(connection: Connection, node: WorkerNode) -> None:
    """One session, until it closes the connection."""
    await Echo(connection, node).run()


class Echo:
    """One session in one worker."""

    def __init__(self, connection: Connection, node: WorkerNode) -> None:
        self._connection = connection
        self._node = node
        self._peers: dict[str, Connection] = {}
        self._over = trio.Event()
        self._error: PartitaError | None = None

    async def run(self) -> None:
        """Returns when the session is over; raises if it asked for that."""
        self._connection.start(self._hear, lambda error: self._over.set())
        await self._over.wait()
        if self._error is not None:
            raise self._error

    def _hear(self, messages: list[WireMessage]) -> None:
        for message in messages:
            getattr(self, f"_{message.header['op']}")(message)

    def _echo(self, message: WireMessage) -> None:
        self._connection.post(message)

    def _relay(self, message: WireMessage) -> None:
        peer = self._peer(str(message.header["to"]), str(message.header["at"]))
        peer.post(WireMessage({**message.header, "op": "back"}, message.tensors))

    def _peer(self, to: str, at: str) -> Connection:
        peer = self._node.connection_to(to, at)
        if self._peers.get(to) is not peer:
            self._peers[to] = peer
            peer.start(lambda messages: self._hear_peer(peer, messages), lambda error: self._lose_peer(to, error))
        return peer

    def _hear_peer(self, peer: Connection, messages: list[WireMessage]) -> None:
        for message in messages:
            if message.header["op"] == "back":
                peer.post(
                    WireMessage({**message.header, "op": "returned", "by": self._node.process_id}, message.tensors)
                )
            else:
                self._connection.post(message)

    def _lose_peer(self, to: str, error: PartitaError) -> None:
        self._connection.post(WireMessage({"op": "lost", "who": to, "error": error.message}, []))

    def _expect(self, message: WireMessage) -> None:
        """A peer that will connect or be connected."""
        self._peer(str(message.header["to"]), str(message.header["at"]))

    def _where(self, message: WireMessage) -> None:
        names = [thread.name for thread in threading.enumerate()]
        here = {"op": "here", "pid": os.getpid(), "process": self._node.process_id, "threads": names}
        self._connection.post(WireMessage(here, []))

    def _mute(self, message: WireMessage) -> None:
        link = self._connection._link
        assert link is not None
        self._connection._bridge.to_loop(write_dask_message, link)

    def _block(self, message: WireMessage) -> None:
        """Keeps trio from doing anything else."""
        assert RELEASED.wait(60)
        RELEASED.clear()

    def _leave(self, message: WireMessage) -> None:
        self._over.set()

    def _fail(self, message: WireMessage) -> None:
        self._error = FailedPreconditionError("told to fail")
        self._over.set()

    def _bad(self, message: WireMessage) -> None:
        raise ValueError("told to raise")

    def _retire(self, message: WireMessage) -> None:
        self._node.on_retire = lambda: self._connection.post(WireMessage({"op": "retiring"}, []))


def write_dask_message(link: CommLink) -> None:
    """Sends what dask would unpickle, and thereby call."""
    frames = dumps({"x": ToPickle(print)})
    head = pack_frames_prelude(frames)
    link._stream._written = link._stream._stream.write(b"".join([struct.pack("Q", len(head)), head, *frames]))
