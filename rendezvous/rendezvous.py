"""The protocol of a rendezvous: the devices of a step send tensors to each other under keys.

A key goes through these states; its queue holds values or waiters, not both:

        send            send               recv                recv
    ,----------.    ,-----------.      ,-----------.       ,-----------.
    |          v    |           v      |           v       |           v
  EMPTY       VALUES (1..n, FIFO)    EMPTY        WAITERS (1..n, FIFO)
    ^          |                       ^           |
    '----------'                       '-----------'
     recv takes the last value           send or cancel takes the last waiter

  any state -- abort(error) or close() --> ENDED: waiters get the error, values are dropped, every later call gets the
  error of the first abort. This is final: each step has a new rendezvous.

Values under one key are received in the order in which they were sent, each once, or not at all after an abort. A
cancelled receive takes no value. A dead tensor is sent like any other, with `is_dead`. All calls are made on the thread
of the event loop. `tests/rendezvous/test_conformance.py` holds every implementation to this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..errors import PartitaError


class Received(NamedTuple):
    """One message: a tensor and whether it is dead; the value of a dead tensor has no meaning and may be None."""

    value: Any  # a tensor of any element type, or a variable: the rendezvous does not look at it
    is_dead: bool


Outcome = Received | PartitaError
"""how a receive ends: with a tensor, or with the error that aborted it"""
Callback = Callable[[Outcome], None]
"""called once with the outcome of a receive, within `send`, `abort` or `recv_callback` itself"""
Delivery = Callable[[Hashable, Outcome], None]
"""as `Callback`, for the receives of several keys: called with the key and the outcome of each"""


class Waiter(Protocol):
    """The handle of a receive."""

    def cancel(self) -> bool:
        """Cancels the receive: its callback will not be called. False if the receive was over before."""
        ...


class NotedWaiter:
    """A waiter that calls `cancelled` when its receive is cancelled, unless that was over."""

    __slots__ = ("_cancelled", "_inner")

    def __init__(self, inner: Waiter, cancelled: Callable[[], object]) -> None:
        self._inner = inner
        self._cancelled = cancelled

    def cancel(self) -> bool:
        """As `Waiter.cancel`."""
        was_waiting = self._inner.cancel()
        if was_waiting:
            self._cancelled()
        return was_waiting


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a rendezvous; `sends == receives + queued + dropped` at any moment."""

    sends: int
    """messages accepted"""
    receives: int
    """messages delivered"""
    queued: int
    """messages now waiting to be received"""
    waiting: int
    """receives now waiting for a message"""
    bytes: int
    """sum of the sizes of the tensors sent (a string tensor counts its references)"""
    dropped: int
    """messages discarded by an abort"""
    cancelled: int
    """receives cancelled by their caller"""
    aborted: bool
    """whether it has ended, by `abort` or `close`"""


class Rendezvous(Protocol):
    """The protocol. A key may be any hashable object: a `Key`, or in hot loops its text, made once."""

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:  # Any: see `Received.value`
        """Sends a message and never blocks; a waiting callback runs before this returns.

        After an abort it raises the error of the first abort.
        """
        ...

    async def recv(self, key: Hashable) -> Received:
        """Waits for the next message under `key`; always a checkpoint. Raises the error of the abort."""
        ...

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """Calls `callback` once, with the next message under `key` or with the error of the abort.

        If there is a message, or the rendezvous has ended, the callback runs before this returns. The callback may
        send, receive and abort. It must not raise: the exception would reach the sender.
        """
        ...

    def expect(self, keys: Collection[Hashable], deliver: Delivery) -> None:
        """As `recv_callback` for each of many keys, with one callback, which gets the key too.

        These receives cannot be cancelled.
        """
        ...

    def when_taken(self, key: Hashable, callback: Callable[[], None]) -> bool:
        """Calls `callback` when the one message that waits under `key` has been received; the receiver has it then.

        Returns False, and calls nothing, if no message waits there or several do. An abort drops the callback. A second
        call for a message replaces the first. The callback may do what that of a receive may do.
        """
        ...

    def abort(self, error: PartitaError) -> None:
        """Ends the rendezvous: waiters get `error`, queued messages are dropped. Later aborts have no effect."""
        ...

    def close(self) -> None:
        """Aborts the rendezvous with a CancelledError."""
        ...

    def forget_error(self) -> None:
        """Lets the error of an abort go, when the step is over; later calls get the error of `close`."""
        ...

    def waiting(self) -> list[str]:
        """The keys of receives without a message; after the end, those that had none then."""
        ...

    def statistics(self) -> Statistics:
        """The counts at this moment."""
        ...
