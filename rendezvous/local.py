"""The rendezvous of one process: a dict from key to the messages, or to the receives, that wait under it.

`rendezvous.py` draws the states of a key. The table holds, per key,

    a `Received`          one message that was not received yet, an `_Awaited` if its sender waits for that
    a `_Waiter`           one receive that got no message yet
    an `_Expectation`     the same, of a key that is received together with others
    a deque of either     two or more of them

and no entry for a key without messages and receives. In hot loops make `str(key)` once, use `send` and `recv_callback`,
and do not await: a transfer then costs a dict entry and one tuple (about 0.4 us), and no event, lock or task switch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable
from functools import partial
from typing import Any

import trio

from ..errors import CancelledError, PartitaError
from .rendezvous import Callback, Delivery, Outcome, Received, Statistics, Waiter

_new = tuple.__new__  # messages and waiters are tuples, which this makes in half the time of an object with slots


class _Waiter(tuple["LocalRendezvous", Hashable, Callback]):
    """A receive (rendezvous, key, callback) without a message; it is in the table until it gets one or is cancelled."""

    __slots__ = ()
    # By identity: two receives of one key with the same callback are two receives.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def cancel(self) -> bool:
        """Removes the receive from the table; False if it is not there any more."""
        rendezvous, key, _ = self
        return rendezvous._withdraw(key, self)


class _Expectation:
    """The receives of many keys that have one callback: no object is made for each, which the collector would walk."""

    __slots__ = ("deliver",)

    def __init__(self, deliver: Delivery) -> None:
        self.deliver = deliver


class _Awaited(Received):
    """A message whose sender wants to know when it is received; it is in the table in place of the message."""

    on_taken: Callable[[], None]


class _Served:
    """The waiter of a receive whose callback ran before `recv_callback` returned."""

    __slots__ = ()

    def cancel(self) -> bool:
        return False


SERVED = _Served()
_Item = Received | _Waiter | _Expectation
_Entry = _Item | deque[_Item]


def _closed() -> CancelledError:
    return CancelledError("The rendezvous was closed: its step is over.")


def _deliver(key: Hashable, waiter: _Waiter | _Expectation, outcome: Outcome) -> None:
    """Ends a receive."""
    if isinstance(waiter, _Expectation):
        waiter.deliver(key, outcome)
    else:
        waiter[2](outcome)


def _holds_messages(entry: _Entry) -> bool:
    """Whether an entry holds messages; otherwise it holds waiters."""
    return isinstance(entry[0] if isinstance(entry, deque) else entry, Received)


class LocalRendezvous:
    """The `Rendezvous` of one process. Use a new one for each step, and `close` it when the step is over."""

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
        """Sends a message and never blocks; a waiting callback runs before this returns."""
        if self._error is not None:
            raise self._error
        message: Received = _new(Received, (value, is_dead))
        self._sends += 1
        self._bytes += getattr(value, "nbytes", 0)  # a variable and the None of a dead tensor have no size
        table = self._table
        entry = table.setdefault(key, message)
        if entry is message:
            return
        if type(entry) is _Expectation:
            del table[key]
            entry.deliver(key, message)
        elif type(entry) is _Waiter:
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
        elif type(entry) is _Awaited:
            del table[key]
            callback(Received(*entry))  # without what the sender keeps
            entry.on_taken()
        elif isinstance(entry, deque) and isinstance(entry[0], Received):
            message = self._next_of_queue(key, entry)
            callback(Received(*message))
            if type(message) is _Awaited:
                message.on_taken()
        else:
            waiter = _new(_Waiter, (self, key, callback))
            self._add(key, entry, waiter)
            return waiter
        return SERVED

    def expect(self, keys: Collection[Hashable], deliver: Delivery) -> None:
        """As `recv_callback` for each of many keys; `deliver` gets the key too."""
        expectation = _Expectation(deliver)
        entries = dict.fromkeys(keys, expectation)
        if self._error is None and len(entries) == len(keys) and self._table.keys().isdisjoint(entries):
            self._table.update(entries)
            return
        for key in keys:
            if self._error is None and key not in self._table:
                self._table[key] = expectation
            else:
                self.recv_callback(key, partial(deliver, key))

    def when_taken(self, key: Hashable, callback: Callable[[], None]) -> bool:
        """Calls `callback` when the one message under `key` has been received; False if there is not exactly one."""
        entry = self._table.get(key)
        if not isinstance(entry, Received):
            return False
        self._table[key] = awaited = _Awaited(*entry)
        awaited.on_taken = callback
        return True

    async def recv(self, key: Hashable) -> Received:
        """Waits for the next message under `key`; a cancelled wait removes its waiter and takes no message."""
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
            # The message is out of the table already, so a cancellation here would lose it.
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
        for key, entry in entries.items():
            for item in entry if isinstance(entry, deque) else (entry,):
                if isinstance(item, Received):
                    self._dropped += 1
                    continue
                try:
                    _deliver(key, item, error)
                except Exception as failure:  # noqa: BLE001 - the other waiters must get the error too
                    failures.append(failure)
        if failures:
            raise ExceptionGroup("rendezvous callbacks raised during an abort", failures)

    def close(self) -> None:
        """Ends the rendezvous with a CancelledError; harmless when it has ended already."""
        self.abort(_closed())

    def forget_error(self) -> None:
        """Lets the error of an abort go; later calls get the error of `close`."""
        if self._error is not None:
            self._error = _closed()

    def waiting(self) -> list[str]:
        """The keys of receives without a message, after the end those at the end. Walks the table."""
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
        """Sends under a key that has a message already, or two or more waiters."""
        if isinstance(entry, deque) and not isinstance(entry[0], Received):
            _deliver(key, self._next_of_queue(key, entry), message)
        else:
            self._add(key, entry, message)

    def _add(self, key: Hashable, entry: _Entry, item: _Item) -> None:
        """Appends `item` to the entry of the key, which holds items of the same kind."""
        if isinstance(entry, deque):
            entry.append(item)
        else:
            self._table[key] = deque((entry, item))

    def _next_of_queue(self, key: Hashable, queue: deque[_Item]) -> Any:  # Any: the caller knows the kind
        """Removes and returns the earliest item of a queue."""
        item = queue.popleft()
        if not queue:
            del self._table[key]
        return item

    def _withdraw(self, key: Hashable, waiter: _Waiter) -> bool:
        """Removes a waiter from the table; False if it is not there any more."""
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
