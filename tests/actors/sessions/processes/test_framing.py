"""Frames on a stream of dask: what is written is read, whatever its pieces; anything else ends it, and runs nothing."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from partita.actors.sessions.processes.framing import FramedStream, Kind
from partita.errors import DataLossError, PartitaError, ResourceExhaustedError, UnimplementedError

iostream = pytest.importorskip("tornado.iostream", reason="distributed is not installed: pip install '.[dask]'")
LONGEST = 1 << 20


def comm_of(end: socket.socket) -> SimpleNamespace:
    """What framing uses of a comm of dask."""
    end.setblocking(False)
    stream = iostream.IOStream(end, max_buffer_size=LONGEST)
    return SimpleNamespace(stream=stream, abort=stream.close, peer_address="tcp://here")


def with_two(use: Callable[[FramedStream, FramedStream], Awaitable[None]]) -> None:
    """Calls a function with two ends of a connection, in a loop."""

    async def main() -> None:
        ends = [FramedStream(comm_of(end)) for end in socket.socketpair()]
        try:
            await use(*ends)
        finally:
            for end in ends:
                end.abort()

    asyncio.run(main())


PIECES = st.lists(st.one_of(st.binary(max_size=50), st.integers(0, 1 << 18).map(bytes)), min_size=1, max_size=4)


@given(st.lists(st.tuples(st.sampled_from(Kind), PIECES), max_size=4))
def test_frames_are_read_as_they_were_written(frames: list[tuple[Kind, list[bytes]]]) -> None:
    """Of every kind and length below the longest, in order; a long one is heard before it is there."""
    frames = [(kind, pieces if kind == Kind.MESSAGES else [each[:1000] for each in pieces]) for kind, pieces in frames]

    async def use(one: FramedStream, other: FramedStream) -> None:
        for kind, pieces in frames:
            one.write(kind, [memoryview(piece) if len(piece) % 2 else piece for piece in pieces])
        for kind, pieces in frames:
            heard: list[int] = []
            read, body = await other.read(lambda heard=heard: heard.append(1))  # type: ignore[misc]  # a default
            assert (read, bytes(body)) == (kind, b"".join(pieces))
            assert heard

    with_two(use)


def refused(data: bytes) -> PartitaError:
    """What reading one frame from the bytes raises."""
    errors: list[PartitaError] = []

    async def use(one: FramedStream, other: FramedStream) -> None:
        await one._stream.write(data)
        with pytest.raises(PartitaError) as error:
            await other.read(lambda: None)
        errors.append(error.value)

    with_two(use)
    return errors[0]


@given(st.binary(min_size=16, max_size=16))
def test_garbage_is_refused(data: bytes) -> None:
    """Sixteen bytes that are not the head of a frame."""
    if not data.startswith(b"PRT1"):
        assert "no message of Partita" in refused(data).message


@pytest.mark.parametrize("kind", Kind)
def test_lengths_are_checked_before_memory_is_taken(kind: Kind) -> None:
    """A frame that claims to be longer than half of the memory, and a short kind of 64 KiB."""
    claimed = LONGEST + 1 if kind == Kind.MESSAGES else (1 << 16) + 1
    error = refused(struct.pack("<4sB3xQ", b"PRT1", kind, claimed))
    assert type(error) is DataLossError
    assert f"claims {claimed} bytes" in error.message


def test_a_kind_that_is_not_known_is_refused() -> None:
    """As garbage is."""
    assert type(refused(struct.pack("<4sB3xQ", b"PRT1", 9, 0))) is DataLossError


def test_a_message_that_is_too_long_is_not_written() -> None:
    """The sender says so, and the stream stays usable."""

    async def use(one: FramedStream, other: FramedStream) -> None:
        with pytest.raises(ResourceExhaustedError, match=f"{LONGEST + 1} bytes is longer than the {LONGEST} bytes"):
            one.write(Kind.MESSAGES, [bytes(LONGEST + 1)])
        one.write(Kind.BEAT)
        assert (await other.read(lambda: None))[0] == Kind.BEAT

    with_two(use)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b""])
def test_a_greeting_that_is_none_is_refused(body: bytes) -> None:
    """The first frame of the side that accepts must be a JSON object."""

    async def use(one: FramedStream, other: FramedStream) -> None:
        one.write(Kind.HELLO, [body])
        with pytest.raises(DataLossError, match="no greeting of Partita"):
            await other.read_hello()

    with_two(use)


def test_a_comm_without_a_socket_is_refused() -> None:
    """Such as those of inproc://, whose workers are threads."""
    with pytest.raises(UnimplementedError, match="not over 'inproc://1'"):
        FramedStream(SimpleNamespace(peer_address="inproc://1"))
