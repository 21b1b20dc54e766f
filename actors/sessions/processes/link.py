"""The asyncio side of a connection: encodes and writes, reads and decodes, and notices when the other side is gone.

A socket that breaks ends the link at once. For a host that falls silent there is a heartbeat: the side that accepted
sends a beat every fifth of `heartbeat_s`, and the side that connected counts its own fifths in which nothing came; five
in a row end the link. Fifths are counted and not seconds, so that a process that was itself stopped for a while (a
laptop that slept, Ctrl-Z) does not take the others for dead when it goes on. Every piece of a long message counts as a
sign of life. Beats are sent here, where neither kernels nor steps of trio hold them up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import methodcaller
from typing import Protocol

from ....devices.wire import WireMessage, decode, encode
from ....errors import DataLossError, InternalError, InvalidArgumentError, PartitaError, UnavailableError
from .bridge import LoopBridge
from .framing import FramedStream, Kind

_FIFTHS = 5
_CLOSE_S = 2.0  # how long a close waits for the other side to read


class CommLinkUser(Protocol):
    """Who gets what arrives, in the thread of trio."""

    def deliver(self, messages: list[WireMessage]) -> None:
        """Messages have arrived."""

    def lose(self, error: PartitaError) -> None:
        """The link has ended, and not from this side."""


class CommLink:
    """One open stream; all methods are called in the thread of asyncio, except `attach`."""

    def __init__(
        self, stream: FramedStream, bridge: LoopBridge, whom: str, *, heartbeat_s: float, is_watched: bool
    ) -> None:
        """`whom` names the other side in errors; `is_watched` is true on the side that connected."""
        self.whom = whom
        self._stream = stream
        self._bridge = bridge
        self._fifth_s = heartbeat_s / _FIFTHS
        self._heartbeat_s = heartbeat_s
        self._is_watched = is_watched
        self._heard = True
        self._user: CommLinkUser | None = None
        self._early: list[Callable[[CommLinkUser], None]] = []  # what happened before there was a user
        self._closing: asyncio.Task[None] | None = None
        self._is_over = False  # from this side or from the other

    def attach(self, user: CommLinkUser) -> None:
        """In trio: says who gets what arrives, and what has arrived."""
        self._user = user
        early, self._early = self._early, []
        for tell in early:
            tell(user)

    def send(self, messages: list[WireMessage]) -> None:
        """Writes messages as one frame."""
        if self._is_over:
            return
        try:
            self._stream.write(Kind.MESSAGES, encode(messages))
        except OSError:
            pass  # the reader says so
        except Exception as error:  # noqa: BLE001 - of the encoder
            self._end(error if isinstance(error, PartitaError) else _internal(f"encode for {self.whom}", error))

    async def run(self) -> None:
        """Reads until the end; the stream is closed then."""
        heartbeat = asyncio.ensure_future(self._watch() if self._is_watched else self._beat())
        try:
            while True:
                kind, body = await self._stream.read(self._hear)
                if kind == Kind.MESSAGES:
                    messages = decode(body)
                    self._bridge.to_trio(self._tell, methodcaller("deliver", messages))
                elif kind == Kind.GOODBYE:
                    raise UnavailableError(f"{self.whom} closed the connection{_because(body)}")
        except OSError as error:
            cause = getattr(error, "real_error", None) or "it was closed"
            self._end(UnavailableError(f"the connection to {self.whom} broke: {cause}"))
        except PartitaError as error:
            self._end(_from(self.whom, error))
        except Exception as error:  # noqa: BLE001 - of the decoder
            self._end(_internal(f"decode what came from {self.whom}", error))
        finally:
            heartbeat.cancel()
            self._end(UnavailableError(f"the connection to {self.whom} ends: this worker closes"))

    def close_soon(self, reason: str = "") -> asyncio.Task[None]:
        """Writes what waits, says goodbye, and closes; gives up if the other side does not read."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close(reason))
        return self._closing

    async def close(self, reason: str = "") -> None:
        """As `close_soon`; waits for that."""
        await asyncio.shield(self.close_soon(reason))

    async def _close(self, reason: str) -> None:
        if not self._is_over:
            self._is_over = True
            try:
                self._stream.write(Kind.GOODBYE, [reason.encode()])
                await asyncio.wait_for(self._stream.flush(), _CLOSE_S)
            except (OSError, TimeoutError):
                pass
        self._stream.abort()

    def abort(self) -> None:
        """Closes at once."""
        self._is_over = True
        self._stream.abort()

    def _end(self, error: PartitaError) -> None:
        """Closes because of something that did not happen here."""
        if not self._is_over:
            self._is_over = True
            self._bridge.to_trio(self._tell, methodcaller("lose", error))
        self._stream.abort()

    def _tell(self, tell: Callable[[CommLinkUser], None]) -> None:
        """In trio: calls a method of the user."""
        if self._user is None:
            self._early.append(tell)
        else:
            tell(self._user)

    def _hear(self) -> None:
        self._heard = True

    async def _beat(self) -> None:
        """Shows that this process lives."""
        while True:
            await asyncio.sleep(self._fifth_s)
            try:
                self._stream.write(Kind.BEAT)
            except OSError:
                return

    async def _watch(self) -> None:
        """Ends the link when nothing came for long."""
        silent = 0
        while silent < _FIFTHS:
            await asyncio.sleep(self._fifth_s)
            silent = 0 if self._heard else silent + 1
            self._heard = False
        self._end(UnavailableError(f"{self.whom} has given no sign of life for {self._heartbeat_s:g} s"))


def _because(body: memoryview) -> str:
    reason = bytes(body).decode(errors="replace")
    return f": {reason}" if reason else ""


def _from(whom: str, error: PartitaError) -> PartitaError:
    """An error of what came, which says where it came from."""
    if isinstance(error, DataLossError | InvalidArgumentError):
        return DataLossError(f"the connection to {whom} ends: {error.message}")
    return error


def _internal(what: str, error: Exception) -> InternalError:
    wrapped = InternalError(f"cannot {what}: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
