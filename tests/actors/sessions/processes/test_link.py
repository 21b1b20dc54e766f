"""The asyncio side of a connection: what arrives before trio asks is kept, and an end is told once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from partita.actors.sessions.processes.framing import Kind
from partita.actors.sessions.processes.link import CommLink
from partita.devices.wire import WireMessage, encode
from partita.errors import DataLossError, InternalError, PartitaError, UnavailableError

Frames = list[tuple[Kind, bytes] | Exception]


class Script:
    """A stream that reads given frames, then waits or raises; it notes what is written."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self.written: list[tuple[Kind, bytes]] = []
        self.has_written = asyncio.Event()
        self.is_closed = False

    async def read(self, heard: Callable[[], None]) -> tuple[Kind, memoryview]:
        """The next frame."""
        if not self._frames:
            await asyncio.Event().wait()
        frame = self._frames.pop(0)
        if isinstance(frame, Exception):
            raise frame
        heard()
        return frame[0], memoryview(frame[1])

    def write(self, kind: Kind, parts: Sequence[bytes] = ()) -> None:
        """Notes a frame."""
        self.written.append((kind, b"".join(parts)))
        self.has_written.set()

    async def flush(self) -> None:
        """All is written."""

    def abort(self) -> None:
        """Notes it."""
        self.is_closed = True


class User:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.messages: list[WireMessage] = []
        self.errors: list[PartitaError] = []
        self.is_lost = asyncio.Event()

    def deliver(self, messages: list[WireMessage]) -> None:
        """Notes messages."""
        self.messages += messages

    def lose(self, error: PartitaError) -> None:
        """Notes the end."""
        self.errors.append(error)
        self.is_lost.set()


def link_of(stream: Script, **settings: Any) -> CommLink:  # Any: of CommLink
    """A link whose calls to trio are made at once."""
    bridge = SimpleNamespace(to_trio=lambda function, *arguments: function(*arguments))
    return CommLink(stream, bridge, "the other", **{"heartbeat_s": 60, "is_watched": True, **settings})  # type: ignore[arg-type]


def batch(*numbers: int) -> tuple[Kind, bytes]:
    """A frame of messages."""
    return Kind.MESSAGES, b"".join(encode([WireMessage({"n": number}, []) for number in numbers]))


def told(frames: Frames) -> User:
    """What a user is told who comes when all is over."""

    async def main() -> User:
        stream, user = Script(frames), User()
        link = link_of(stream)
        await link.run()
        assert stream.is_closed
        link.attach(user)
        return user

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("end", "kind", "text"),
    [
        (OSError(), UnavailableError, "the connection to the other broke"),
        ((Kind.GOODBYE, b"because"), UnavailableError, "the other closed the connection: because"),
        (DataLossError("no message"), DataLossError, "the connection to the other ends: no message"),
        ((Kind.MESSAGES, b"garbage"), DataLossError, "the connection to the other ends"),
        (ZeroDivisionError("a bug"), InternalError, "cannot decode what came from the other: ZeroDivisionError: a bug"),
    ],
)
def test_what_came_before_the_user_is_kept(end: Any, kind: type[PartitaError], text: str) -> None:
    """Messages in order, then why the link ended."""
    user = told([batch(1, 2), (Kind.BEAT, b""), batch(3), end])
    assert [message.header["n"] for message in user.messages] == [1, 2, 3]
    assert [type(error) for error in user.errors] == [kind]
    assert text in user.errors[0].message


def test_an_own_close_is_not_told() -> None:
    """It says goodbye once, and what is sent after it is dropped."""

    async def main() -> None:
        stream, user = Script([]), User()
        link = link_of(stream)
        link.attach(user)
        reading = asyncio.ensure_future(link.run())
        closing = link.close_soon("enough")
        await link.close("again")
        link.send([WireMessage({}, [])])
        reading.cancel()
        await asyncio.wait([reading, closing])
        assert stream.written == [(Kind.GOODBYE, b"enough")]
        assert stream.is_closed
        assert user.errors == []

    asyncio.run(main())


def test_a_message_that_cannot_be_encoded_ends_the_link() -> None:
    """Its header is no JSON: a mistake of the sender, who hears of it."""

    async def main() -> None:
        stream, user = Script([]), User()
        link = link_of(stream)
        link.attach(user)
        link.send([WireMessage({"not": object()}, [])])
        assert [type(error) for error in user.errors] == [InternalError]
        assert stream.is_closed

    asyncio.run(main())


def test_who_accepted_beats_and_who_connected_counts() -> None:
    """The one writes beats without end; the other gives up after five of its own fifths in which nothing came."""

    async def main() -> None:
        beating, silent, user = Script([]), Script([]), User()
        accepted = asyncio.ensure_future(link_of(beating, heartbeat_s=0.001, is_watched=False).run())
        connected = link_of(silent, heartbeat_s=0.001)
        connected.attach(user)
        reading = asyncio.ensure_future(connected.run())
        await asyncio.gather(beating.has_written.wait(), user.is_lost.wait())
        for task in (accepted, reading):
            task.cancel()
        await asyncio.wait([accepted, reading])
        assert {kind for kind, _ in beating.written} == {Kind.BEAT}
        assert silent.written == []
        assert [error.message for error in user.errors] == ["the other has given no sign of life for 0.001 s"]

    asyncio.run(main())
