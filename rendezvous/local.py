"""The rendezvous of one process: a dict from key to what arrived first, value or waiter.

Flows in: `send`, `recv`, `recv_callback`. Flows out: messages, in order. `rendezvous.py` draws the states.

Hot path, for executors: precompute `str(key)`, call `send` and `recv_callback`, never await. A pair then costs a dict
entry and one tuple (about 0.4 us); no event, lock, channel or task switch exists per key. The table holds, per key,
    a `Received`          one message nobody asked for yet
    a `_Waiter`           one request nothing came for yet
    a deque of either     only from the second one on
Always holds: a key without messages and waiters is not in the table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any

import trio

from ..errors import CancelledError, PartitaError
from .rendezvous import Callback, Outcome, Received, Statistics, Waiter

_new = tuple.__new__  # messages and waiters are tuples, because this makes them at half the price of a class of slots


class _Waiter(tuple["LocalRendezvous", Hashable, Callback]):
    """A registered receive (home, key, callback); it is waiting exactly as long as the table holds this object."""

    __slots__ = ()
    # Two receives of one key with one callback are still two.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def cancel(self) -> bool:
        """Takes the receive out of the table; False when it is no longer there."""
        home, key, _ = self
        return home._withdraw(key, self)


class _Served:
    """The waiter of a receive that was over before `recv_callback` returned."""

    __slots__ = ()

    def cancel(self) -> bool:
        """Nothing is left to withdraw."""
        return False


SERVED = _Served()
"""the waiter of every receive that is over"""
_Item = Received | _Waiter
_Entry = _Item | deque[_Item]


def _holds_messages(entry: _Entry) -> bool:
    """Whether an entry is of messages; else it is of waiters."""
    return isinstance(entry[0] if isinstance(entry, deque) else entry, Received)


class LocalRendezvous:
    """Where the actors of one process meet. Use one per step, and `close` it when the step is over."""

    __slots__ = ("_bytes", "_cancelled", "_dropped", "_error", "_sends", "_table", "_unserved")

    def __init__(self) -> None:
        self._table: dict[Hashable, _Entry] = {}
        self._error: PartitaError | None = None
        self._sends = 0
        self._bytes = 0
        self._dropped = 0
        self._cancelled = 0
        self._unserved: list[str] = []

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:  # Any: see `Received.value`
        """Hands over a message and never blocks; a waiting callback runs before this returns."""
        if self._error is not None:
            raise self._error
        message: Received = _new(Received, (value, is_dead))
        self._sends += 1
        self._bytes += getattr(value, "nbytes", 0)  # a variable and the None of a dead tensor have no size
        table = self._table
        entry = table.setdefault(key, message)
        if entry is message:
            return
        if type(entry) is _Waiter:
            del table[key]
            entry[2](message)
        else:
            self._send_to_queue(key, entry, message)

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """Calls `callback` once with the next message under `key` or with the error of the abort."""
        table = self._table
        entry = table.get(key)
        waiter: _Waiter
        if entry is None:
            if self._error is None:
                table[key] = waiter = _new(_Waiter, (self, key, callback))
                return waiter
            callback(self._error)
        elif type(entry) is Received:
            del table[key]
            callback(entry)
        elif isinstance(entry, deque) and isinstance(entry[0], Received):
            callback(self._next_of_queue(key, entry))
        else:
            waiter = _new(_Waiter, (self, key, callback))
            self._add(key, entry, waiter)
            return waiter
        return SERVED

    async def recv(self, key: Hashable) -> Received:
        """Waits for the next message under `key`; a cancelled wait leaves no waiter and takes no message."""
        await trio.lowlevel.checkpoint_if_cancelled()
        task = trio.lowlevel.current_task()
        outcomes: list[Outcome] = []
        parked = False

        def deliver(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if parked:
                trio.lowlevel.reschedule(task)

        def withdraw(_raise_cancel: object) -> trio.lowlevel.Abort:
            waiter.cancel()
            return trio.lowlevel.Abort.SUCCEEDED

        waiter = self.recv_callback(key, deliver)
        if outcomes:
            # Taken already, so a cancellation that arrives now must not lose it.
            await trio.lowlevel.cancel_shielded_checkpoint()
        else:
            parked = True
            await trio.lowlevel.wait_task_rescheduled(withdraw)
        outcome = outcomes[0]
        if isinstance(outcome, PartitaError):
            raise outcome
        return outcome

    def abort(self, error: PartitaError) -> None:
        """Ends the rendezvous: waiters get `error`, queued messages are dropped. Later aborts change nothing."""
        if self._error is not None:
            return
        self._unserved = self.waiting()
        self._error = error
        entries, self._table = self._table, {}
        failures = []
        for entry in entries.values():
            for item in entry if isinstance(entry, deque) else (entry,):
                if isinstance(item, Received):
                    self._dropped += 1
                    continue
                try:
                    item[2](error)
                except Exception as failure:  # noqa: BLE001 - one bad callback must not keep the others waiting
                    failures.append(failure)
        if failures:
            raise ExceptionGroup("rendezvous callbacks raised during an abort", failures)

    def close(self) -> None:
        """Ends the rendezvous with a CancelledError; harmless when it has ended already."""
        self.abort(CancelledError("The rendezvous was closed: its step is over."))

    def waiting(self) -> list[str]:
        """The keys that somebody waits for; after the end those that somebody waited for then. Walks the table."""
        if self._error is not None:
            return self._unserved
        return [str(key) for key, entry in self._table.items() if not _holds_messages(entry)]

    def statistics(self) -> Statistics:
        """A snapshot of the counters; walks the table."""
        queued = waiting = 0
        for entry in self._table.values():
            count = len(entry) if isinstance(entry, deque) else 1
            if _holds_messages(entry):
                queued += count
            else:
                waiting += count
        return Statistics(
            sends=self._sends,
            receives=self._sends - queued - self._dropped,
            queued=queued,
            waiting=waiting,
            bytes=self._bytes,
            dropped=self._dropped,
            cancelled=self._cancelled,
            aborted=self._error is not None,
        )

    def _send_to_queue(self, key: Hashable, entry: _Entry, message: Received) -> None:
        """Sends under a key that holds a message already, or more than one of either kind."""
        if isinstance(entry, deque) and isinstance(entry[0], _Waiter):
            waiter = self._next_of_queue(key, entry)
            waiter[2](message)
        else:
            self._add(key, entry, message)

    def _add(self, key: Hashable, entry: _Entry, item: _Item) -> None:
        """Puts `item` behind what the key holds, which is of its own kind."""
        if isinstance(entry, deque):
            entry.append(item)
        else:
            self._table[key] = deque((entry, item))

    def _next_of_queue(self, key: Hashable, queue: deque[_Item]) -> Any:  # Any: the caller knows the kind
        """Takes the earliest item of a queue, which holds messages only or waiters only."""
        item = queue.popleft()
        if not queue:
            del self._table[key]
        return item

    def _withdraw(self, key: Hashable, waiter: _Waiter) -> bool:
        """Takes a waiter out of the table; whether it was still there."""
        entry = self._table.get(key)
        if isinstance(entry, deque) and waiter in entry:
            entry.remove(waiter)
            if not entry:
                del self._table[key]
        elif entry is waiter:
            del self._table[key]
        else:
            return False
        self._cancelled += 1
        return True
