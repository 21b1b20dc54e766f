"""A rendezvous that records its events, for step traces, tests and debugging.

An event is recorded before its effects: a "send" stands before the "received" of the callback that it runs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter_ns
from typing import Any, Literal

from ..errors import PartitaError
from .rendezvous import Callback, Delivery, NotedWaiter, Outcome, Received, Rendezvous, Statistics, Waiter

EventKind = Literal["send", "refused", "recv", "received", "failed", "cancelled", "abort", "close"]


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a rendezvous.

    send                            a message was sent; "refused" follows if the rendezvous had ended
    recv                            a receive began; it ends with exactly one of
    received / failed / cancelled
    abort / close                   `abort` or `close` was called
    """

    kind: EventKind
    key: str = ""
    is_dead: bool = False
    code: str = ""
    """status code of the error, for refused, failed and abort"""
    time_ns: int = field(default=0, compare=False)
    """time on the clock of `perf_counter_ns`; events are compared without it"""
    num_bytes: int = field(default=0, compare=False)
    """size of the tensor, for send and received"""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A received message: when its receive began and ended, on the clock of `perf_counter_ns`, and its size."""

    key: str
    asked_ns: int
    received_ns: int
    num_bytes: int


def _size(value: object) -> int:
    """The bytes of a tensor; 0 for a variable and for the None of a dead tensor."""
    size: int = getattr(value, "nbytes", 0)
    return size


class TracedRendezvous:
    """A `Rendezvous` that passes all calls to `inner` and records them in `events`."""

    def __init__(self, inner: Rendezvous) -> None:
        self.inner = inner
        self.events: list[Event] = []

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:  # Any: see `Received.value`
        """Sends a message; records "send", and "refused" if `inner` raises."""
        self._record("send", str(key), is_dead, num_bytes=_size(value))
        try:
            self.inner.send(key, value, is_dead)
        except PartitaError as error:
            self._record("refused", str(key), is_dead, error.code)
            raise

    async def recv(self, key: Hashable) -> Received:
        """Waits for the next message; records "recv" and the end of the receive."""
        self._record("recv", str(key))
        try:
            received = await self.inner.recv(key)
        except PartitaError as error:
            self._record_end(str(key), error)
            raise
        except BaseException:  # trio.Cancelled
            self._record("cancelled", str(key))
            raise
        self._record_end(str(key), received)
        return received

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """Receives the next message; records "recv" and the end of the receive."""
        name = str(key)
        self._record("recv", name)

        def record(outcome: Outcome) -> None:
            self._record_end(name, outcome)
            callback(outcome)

        return NotedWaiter(self.inner.recv_callback(key, record), partial(self._record, "cancelled", name))

    def expect(self, keys: Collection[Hashable], deliver: Delivery) -> None:
        """Receives the next message of each key; records as `recv_callback`."""
        for key in keys:
            self.recv_callback(key, partial(deliver, key))

    def when_taken(self, key: Hashable, callback: Callable[[], None]) -> bool:
        """As `Rendezvous.when_taken`; records nothing."""
        return self.inner.when_taken(key, callback)

    def abort(self, error: PartitaError) -> None:
        """Ends the rendezvous; records "abort" before the events of the waiters."""
        self._record("abort", code=error.code)
        self.inner.abort(error)

    def close(self) -> None:
        """Ends the rendezvous, and records "close" before the events of the waiters."""
        self._record("close")
        self.inner.close()

    def forget_error(self) -> None:
        """As `Rendezvous.forget_error`; the events name codes of errors only."""
        self.inner.forget_error()

    def waiting(self) -> list[str]:
        """The keys of waiting receives."""
        return self.inner.waiting()

    def transfers(self) -> list[Transfer]:
        """The messages received so far, in the order in which they were received.

        Receives of one key are taken to end in the order in which they began, which holds unless one was cancelled.
        """
        begins: defaultdict[str, deque[int]] = defaultdict(deque)
        transfers = []
        for event in self.events:
            if event.kind == "recv":
                begins[event.key].append(event.time_ns)
            elif event.kind in ("received", "failed", "cancelled"):
                begin_ns = begins[event.key].popleft()
                if event.kind == "received":
                    transfers.append(Transfer(event.key, begin_ns, event.time_ns, event.num_bytes))
        return transfers

    def statistics(self) -> Statistics:
        """What waits now, and the most that has waited."""
        return self.inner.statistics()

    def _record(
        self, kind: EventKind, key: str = "", is_dead: bool = False, code: str = "", *, num_bytes: int = 0
    ) -> None:
        self.events.append(Event(kind, key, is_dead, code, perf_counter_ns(), num_bytes))

    def _record_end(self, key: str, outcome: Outcome) -> None:

        if isinstance(outcome, PartitaError):
            self._record("failed", key, code=outcome.code)
        else:
            self._record("received", key, outcome.is_dead, num_bytes=_size(outcome.value))
