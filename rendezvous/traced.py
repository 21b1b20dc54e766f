"""A rendezvous that remembers what happened in it, for tests, debugging and step traces.

Flows in: any rendezvous. Flows out: the same rendezvous, and `events`, in the order things happened. Always holds: an
event is recorded before what it causes, so a "send" stands before the "received" of the callback that it woke.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import PartitaError
from .rendezvous import Callback, Outcome, Received, Rendezvous, Statistics, Waiter

EventKind = Literal["send", "refused", "recv", "received", "failed", "cancelled", "abort", "close"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    send / refused          a message was handed over / could not be, because the rendezvous had ended
    recv                    somebody asked; each ends in exactly one of
    received / failed / cancelled
    abort / close           the rendezvous was told to end
    """

    kind: EventKind
    key: str = ""
    is_dead: bool = False
    code: str = ""
    """status code of the error, for refused, failed and abort"""


class TracedRendezvous:
    """Records every send, receive, abort and close of `inner` in `events`."""

    def __init__(self, inner: Rendezvous) -> None:
        self.inner = inner
        self.events: list[Event] = []

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:  # Any: see `Received.value`
        """Hands over a message; records "send", and "refused" when `inner` would not have it."""
        self.events.append(Event("send", str(key), is_dead))
        try:
            self.inner.send(key, value, is_dead)
        except PartitaError as error:
            self.events.append(Event("refused", str(key), is_dead, error.code))
            raise

    async def recv(self, key: Hashable) -> Received:
        """Waits for the next message; records "recv" and how it ended."""
        self.events.append(Event("recv", str(key)))
        try:
            received = await self.inner.recv(key)
        except PartitaError as error:
            self._record_end(str(key), error)
            raise
        except BaseException:  # the event loop's own cancellation, which goes on to the caller
            self.events.append(Event("cancelled", str(key)))
            raise
        self._record_end(str(key), received)
        return received

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """Asks for the next message; records "recv" and how it ended."""
        name = str(key)
        self.events.append(Event("recv", name))

        def record(outcome: Outcome) -> None:
            self._record_end(name, outcome)
            callback(outcome)

        return _TracedWaiter(self, name, self.inner.recv_callback(key, record))

    def abort(self, error: PartitaError) -> None:
        """Ends the rendezvous; records "abort" before the waiters hear of it."""
        self.events.append(Event("abort", code=error.code))
        self.inner.abort(error)

    def close(self) -> None:
        """Ends the rendezvous; records "close"."""
        self.events.append(Event("close"))
        self.inner.close()

    def statistics(self) -> Statistics:
        """The counters of `inner`."""
        return self.inner.statistics()

    def _record_end(self, key: str, outcome: Outcome) -> None:
        """Records how a receive ended."""
        if isinstance(outcome, PartitaError):
            self.events.append(Event("failed", key, code=outcome.code))
        else:
            self.events.append(Event("received", key, outcome.is_dead))


class _TracedWaiter:
    """The waiter of `inner` that also records its cancellation."""

    __slots__ = ("_home", "_inner", "_key")

    def __init__(self, home: TracedRendezvous, key: str, inner: Waiter) -> None:
        self._home = home
        self._key = key
        self._inner = inner

    def cancel(self) -> bool:
        """Withdraws the receive; records "cancelled" when it was still waiting."""
        withdrawn = self._inner.cancel()
        if withdrawn:
            self._home.events.append(Event("cancelled", self._key))
        return withdrawn
