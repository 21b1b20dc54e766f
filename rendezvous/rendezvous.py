"""What a rendezvous is: the one place where the devices of a step hand tensors to each other.

Flows in: values under keys from producers, requests for keys from consumers, in any order. Flows out: each value, once.

One key goes through these states; a queue holds values or waiters, never both:

        send            send               recv                recv
    ,----------.    ,-----------.      ,-----------.       ,-----------.
    |          v    |           v      |           v       |           v
  EMPTY       VALUES (1..n, FIFO)    EMPTY        WAITERS (1..n, FIFO)
    ^          |                       ^           |
    '----------'                       '-----------'
     recv takes the last value           send or cancel takes the last waiter

  any state -- abort(error) or close() --> ENDED: waiters get the error, values are dropped, every later call gets the
  error of the first abort. There is no way back: a new step takes a new rendezvous.

Always holds: values under one key arrive in the order they were sent, each exactly once or, after an abort, never; a
cancelled receive takes nothing; when every receive has been served, cancelled or aborted nothing is left in the table.
A dead tensor travels like any other, with its flag up. Everything happens on one thread, that of the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..errors import PartitaError


class Received(NamedTuple):
    """One message: a tensor and whether it is dead; the value of a dead one means nothing and may be None."""

    value: Any  # a tensor of any element type, or a variable: what travels is the affair of the two ends
    is_dead: bool


Outcome = Received | PartitaError
Callback = Callable[[Outcome], None]


class Waiter(Protocol):
    """A receive that may still be waiting."""

    def cancel(self) -> bool:
        """Withdraws the receive: its callback will not be called. False when it was over before."""
        ...


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a rendezvous has done so far; `sends == receives + queued + dropped` at any moment."""

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
    """receives withdrawn by their caller"""
    aborted: bool
    """whether it has ended, by an abort or a close"""


class Rendezvous(Protocol):
    """The protocol. A key is anything hashable: a `Key`, or, in hot loops, the same key as a precomputed string."""

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:  # Any: see `Received.value`
        """Hands over a message and never blocks; a waiting callback runs before this returns.

        Raises the error of the first abort once there was one.
        """
        ...

    async def recv(self, key: Hashable) -> Received:
        """Waits for the next message under `key`; a checkpoint even when it is there. Raises the error of the abort."""
        ...

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """Calls `callback` once with the next message under `key` or with the error of the abort.

        When the message is there, or the rendezvous has ended, the callback runs before this returns. It may send,
        receive and abort itself, and must not raise: an exception would surface in the sender.
        """
        ...

    def abort(self, error: PartitaError) -> None:
        """Ends the rendezvous: waiters get `error`, queued messages are dropped. Later aborts change nothing."""
        ...

    def close(self) -> None:
        """Ends the rendezvous with a CancelledError; harmless when it has ended already."""
        ...

    def waiting(self) -> list[str]:
        """The keys that somebody waits for; after the end those that somebody waited for then."""
        ...

    def statistics(self) -> Statistics:
        """A snapshot of the counters."""
        ...
