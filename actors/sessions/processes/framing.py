"""Frames of bytes on the stream of a comm of distributed.

    P R T 1 | kind | 0 0 0 | length, 8 bytes | body          kind: messages, beat, hello, goodbye

dask's own `Comm.read` is not used once a comm is ours. It unpickles whatever the other side marked as pickled, also
with `deserializers=()` (`distributed.protocol.core.loads`, "__Pickled__"), and allocates whatever length the other side
claims. So frames are read from and written to the stream below the comm, which is a socket or an encrypted socket that
dask has opened. What is not a frame ends the connection. Memory for a body is taken after its length was checked, and
the system backs it as bytes arrive.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ....errors import DataLossError, ResourceExhaustedError, UnimplementedError

if TYPE_CHECKING:
    from distributed.comm import Comm

_Piece = bytes | memoryview

_HEAD = struct.Struct("<4sB3xQ")
_MAGIC = b"PRT1"
_JOINED = 1 << 16  # bytes up to which head and body are copied into one write
_READ = 1 << 20  # bytes after which a reader of a long body looks up, so that a slow body counts as a sign of life
_WRITTEN = 1 << 26  # bytes of a write; TLS takes 2 GiB at most
_MAX_HELLO = 1 << 16


class Kind(IntEnum):
    """What a frame holds."""

    MESSAGES = 0
    BEAT = 1  # empty
    HELLO = 2  # JSON: the first frame of the side that accepts
    GOODBYE = 3  # text: why the other side closes


class ByteStream(Protocol):
    """What is used of `tornado.iostream.IOStream`. Each method raises an OSError once the stream is closed."""

    max_buffer_size: int  # bytes of a message; dask sets it to half of the memory of the machine

    def read_bytes(self, count: int) -> Awaitable[bytes]:
        """The next `count` bytes."""

    def read_into(self, buffer: memoryview) -> Awaitable[int]:
        """Fills a buffer with the next bytes."""

    def write(self, data: bytes | memoryview) -> Awaitable[None]:
        """Writes at once what the system takes, and the rest when it can; ready when all has been taken."""


class FramedStream:
    """The stream of a comm that dask has handed over; used in the thread of its loop."""

    def __init__(self, comm: Comm) -> None:
        """UnimplementedError if the comm is neither of tcp:// nor of tls://."""
        stream = getattr(comm, "stream", None)
        if stream is None or not hasattr(stream, "read_into"):
            raise UnimplementedError(
                f"workers are reached over tcp:// or tls://, not over {comm.peer_address!r}: start the cluster with "
                "protocol='tcp' or 'tls', and with processes"
            )
        self._comm = comm  # closes its stream when nobody holds it
        self._stream: ByteStream = stream
        self._written: Awaitable[None] | None = None  # the last that was written

    def write(self, kind: Kind, parts: Sequence[_Piece] = ()) -> None:
        """Writes a frame: at once what the system takes, the rest when it can. OSError if the stream is closed.

        A part must not be changed until then. ResourceExhaustedError if the other side may not take so many bytes.
        """
        size = sum(len(part) for part in parts)
        longest = self._stream.max_buffer_size
        if size > longest:
            raise ResourceExhaustedError(
                f"a message of {size} bytes is longer than the {longest} bytes that are half of the memory"
            )
        head = _HEAD.pack(_MAGIC, kind, size)
        if size <= _JOINED:
            self._written = self._stream.write(b"".join((head, *parts)))
            return
        self._written = self._stream.write(b"".join((head, parts[0][:_JOINED])))
        for part in (memoryview(parts[0])[_JOINED:], *parts[1:]):
            for start in range(0, len(part), _WRITTEN):
                self._written = self._stream.write(memoryview(part)[start : start + _WRITTEN])

    async def flush(self) -> None:
        """Waits until the system has taken all that was written. OSError if the stream closes before that."""
        if self._written is not None:
            await self._written

    async def read(self, heard: Callable[[], None]) -> tuple[Kind, memoryview]:
        """The next frame; `heard` is called as bytes arrive. OSError at the end, DataLossError for no frame."""
        magic, kind, size = _HEAD.unpack(await self._stream.read_bytes(_HEAD.size))
        heard()
        if magic != _MAGIC or kind not in Kind.__members__.values():
            raise DataLossError(f"what came is no message of Partita: it begins with {magic!r}, not {_MAGIC!r}")
        if size > (self._stream.max_buffer_size if kind == Kind.MESSAGES else _MAX_HELLO):
            raise DataLossError(f"what came claims {size} bytes, which is no message of Partita")
        body = np.empty(size, np.uint8).data  # not zeroed
        for start in range(0, size, _READ):
            await self._stream.read_into(body[start : start + _READ])
            heard()
        return Kind(kind), body

    async def read_hello(self) -> dict[str, object]:
        """The first frame of the side that accepts. DataLossError if it is something else."""
        kind, body = await self.read(lambda: None)
        try:
            hello = json.loads(bytes(body)) if kind == Kind.HELLO else None
        except ValueError:
            hello = None
        if not isinstance(hello, dict):
            raise DataLossError("the first that came is no greeting of Partita")
        return hello

    def write_hello(self, hello: dict[str, object]) -> None:
        """Answers the side that connects."""
        self.write(Kind.HELLO, [json.dumps(hello).encode()])

    def abort(self) -> None:
        """Closes at once."""
        self._comm.abort()
