"""A rendezvous that remembers what happened in it, for tests, debugging and step traces.

Flows in: any rendezvous. Flows out: the same rendezvous, and `events`, in the order things happened. Always holds: an
event is recorded before what it causes, so a "send" stands before the "received" of the callback that it woke.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from time import perf_counter_ns
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
    time_ns: int = field(default=0, compare=False)
    """when, on the clock of `perf_counter_ns`; no part of what happened"""
    num_bytes: int = field(default=0, compare=False)
    """size of the tensor, for send and received"""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message that was received: when it was asked for, when it was there, and how many bytes it had."""

    key: str
    asked_ns: int
    received_ns: int
    num_bytes: int


def _size(value: object) -> int:
    """Bytes of a tensor; a variable and the None of a dead tensor have no size."""
    size: int = getattr(value, "nbytes", 0)
    return size


class TracedRendezvous:
    """Records every send, receive, abort and close of `inner` in `events`."""

    def __init__(self, inner: Rendezvous) -> None:
        self.inner = inner
        self.events: list[Event] = []

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:  # Any: see `Received.value`
        """Hands over a message; records "send", and "refused" when `inner` would not have it."""
        self._record("send", str(key), is_dead, num_bytes=_size(value))
        try:
            self.inner.send(key, value, is_dead)
        except PartitaError as error:
            self._record("refused", str(key), is_dead, error.code)
            raise

    async def recv(self, key: Hashable) -> Received:
        """Waits for the next message; records "recv" and how it ended."""
        self._record("recv", str(key))
        try:
            received = await self.inner.recv(key)
        except PartitaError as error:
            self._record_end(str(key), error)
            raise
        except BaseException:  # the event loop's own cancellation, which goes on to the caller
            self._record("cancelled", str(key))
            raise
        self._record_end(str(key), received)
        return received

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """Asks for the next message; records "recv" and how it ended."""
        name = str(key)
        self._record("recv", name)

        def record(outcome: Outcome) -> None:
            self._record_end(name, outcome)
            callback(outcome)

        return _TracedWaiter(self, name, self.inner.recv_callback(key, record))

    def abort(self, error: PartitaError) -> None:
        """Ends the rendezvous; records "abort" before the waiters hear of it."""
        self._record("abort", code=error.code)
        self.inner.abort(error)

    def close(self) -> None:
        """Ends the rendezvous; records "close"."""
        self._record("close")
        self.inner.close()

    def waiting(self) -> list[str]:
        """The keys that `inner` waits for."""
        return self.inner.waiting()

    def transfers(self) -> list[Transfer]:
        """The messages received so far, in the order they arrived; receives of one key are served as they came."""
        asked: defaultdict[str, deque[int]] = defaultdict(deque)
        received = []
        for event in self.events:
            if event.kind == "recv":
                asked[event.key].append(event.time_ns)
            elif event.kind in ("received", "failed", "cancelled"):
                begun = asked[event.key].popleft()
                if event.kind == "received":
                    received.append(Transfer(event.key, begun, event.time_ns, event.num_bytes))
        return received

    def statistics(self) -> Statistics:
        """The counters of `inner`."""
        return self.inner.statistics()

    def _record(
        self, kind: EventKind, key: str = "", is_dead: bool = False, code: str = "", *, num_bytes: int = 0
    ) -> None:
        self.events.append(Event(kind, key, is_dead, code, perf_counter_ns(), num_bytes))

    def _record_end(self, key: str, outcome: Outcome) -> None:
        """Records how a receive ended."""
        if isinstance(outcome, PartitaError):
            self._record("failed", key, code=outcome.code)
        else:
            self._record("received", key, outcome.is_dead, num_bytes=_size(outcome.value))


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
            self._home._record("cancelled", self._key)
        return withdrawn
