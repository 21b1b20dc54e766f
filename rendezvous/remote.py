"""The rendezvous of a step that runs in several processes, as one of them sees it.

Each process has a table for the step. Senders use the table of their own process. A receive waits in the table of its
process, too; if the value comes from elsewhere (`route`), its key is also asked for at the exchange with that process,
and what arrives is sent to the table here:

    process of the sender                        process of the receiver
    send(k) -> table <- receive of k  <-- Ask -- recv(k): waiter in the table
                            '---------- Data --> table.send(k) -> waiter

One value is asked for each receive of such a key, and no more: `asked == receives + spare`, where a value is spare if
its receive was cancelled. It comes all the same, stays in the table and serves the next receive of the key, which
does not ask.

An abort ends the rendezvous of this process only; who runs the step tells the other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from copy import copy
from functools import partial

import trio

from ..errors import PartitaError
from .exchange import TensorExchange
from .local import LocalRendezvous
from .rendezvous import Callback, Delivery, NotedWaiter, Outcome, Received, Rendezvous, Statistics, Waiter
from .traced import TracedRendezvous

KeyRoute = Callable[[str], TensorExchange | None]
"""the text of a key -> the way to the process that sends under it; None for this one, and for a text that is no key"""


def hosted_here(_key: str) -> None:
    """The route of a step that receives nothing from other processes."""


class RemoteRendezvous:
    """The `Rendezvous` of a step in this process. Counts and `waiting` are of its table.

    So they include values that have come from elsewhere, and receives of other processes that wait for a value of this
    one.
    """

    __slots__ = ("_exchanges", "_front", "_has_ended", "_on_abort", "_route", "_spare", "_table", "send", "step")

    def __init__(
        self, step: int, route: KeyRoute = hosted_here, on_abort: Callable[[PartitaError], object] | None = None
    ) -> None:
        """As `begin`; without a route, other processes may ask already, and nothing can be received from them."""
        self.step = step
        self._route = route
        self._on_abort = on_abort
        self._table = LocalRendezvous()
        self._front: Rendezvous = self._table  # what the nodes of this process use
        self.send: Callable[..., None] = self._table.send
        self._exchanges: set[TensorExchange] = set()  # those that asked here or were asked
        self._spare: dict[str, int] = {}  # by key, how many values were asked for that no receive waits for
        self._has_ended = False

    def begin(self, route: KeyRoute, on_abort: Callable[[PartitaError], object] | None = None) -> None:
        """Says where keys come from, before the first receive; changes nothing after the end.

        `on_abort` is called with the error of the first abort, after all waiters have got it.
        """
        if not self._has_ended:
            self._route = route
            self._on_abort = on_abort

    def trace(self) -> TracedRendezvous:
        """Records from now on what the nodes of this process send and receive; a tensor is recorded where it is used.

        That is: what other processes ask for is no receive here, and what comes from them is no send.
        """
        self._front = traced = TracedRendezvous(self._table)
        self.send = traced.send
        return traced

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """As `Rendezvous.recv_callback`."""
        text = str(key)
        exchange = self._route(text)
        if exchange is None:
            return self._front.recv_callback(key, callback)
        self._ask(exchange, [text])
        waiter = NotedWaiter(self._front.recv_callback(key, callback), partial(self._leave_spare, text))
        self._fail_if_lost(exchange)
        return waiter

    def expect(self, keys: Collection[Hashable], deliver: Delivery) -> None:
        """As `Rendezvous.expect`; the keys of one process are asked for together."""
        asks: dict[TensorExchange, list[str]] = {}
        route = self._route
        for key in keys:
            text = key if type(key) is str else str(key)
            exchange = route(text)
            if exchange is not None:
                texts = asks.get(exchange)
                if texts is None:
                    texts = asks[exchange] = []
                texts.append(text)
        for exchange, texts in asks.items():
            self._ask(exchange, texts)
        self._front.expect(keys, deliver)
        for exchange in asks:
            self._fail_if_lost(exchange)

    async def recv(self, key: Hashable) -> Received:
        """As `Rendezvous.recv`. A cancelled scope asks for nothing; the value of a cancelled wait is left for others.

        A receive that begins between the cancellation of another one of its key and the next turn of that task asks
        for a value of its own. That one is spare then.
        """
        text = str(key)
        exchange = self._route(text)
        if exchange is None:
            return await self._front.recv(key)
        await trio.lowlevel.checkpoint_if_cancelled()
        self._ask(exchange, [text])
        self._fail_if_lost(exchange)
        try:
            return await self._front.recv(key)
        except trio.Cancelled:
            self._leave_spare(text)
            raise

    def when_taken(self, key: Hashable, callback: Callable[[], None]) -> bool:
        """As `Rendezvous.when_taken`, but a message that goes to another process is taken when that has asked for it.

        It may still wait for the budget then. That is enough for loops, which wait for the others to begin an
        iteration: a device asks for the messages of an iteration when it begins that. What waits for the budget is
        bounded as well, since all of it has been asked for.
        """
        return self._front.when_taken(key, callback)

    def abort(self, error: PartitaError) -> None:
        """Ends the rendezvous in this process; values that wait to go to others are dropped."""
        on_abort = self._on_abort
        self._end()
        try:
            self._front.abort(error)
        finally:
            if on_abort is not None:
                on_abort(error)

    def close(self) -> None:
        """Ends the rendezvous in this process with a CancelledError; not an abort."""
        self._end()
        self._front.close()

    def forget_error(self) -> None:
        """As `Rendezvous.forget_error`."""
        self._front.forget_error()

    def waiting(self) -> list[str]:
        """The keys of waiting receives, those of other processes that asked here among them."""
        return self._front.waiting()

    def statistics(self) -> Statistics:
        """The counts of the table of this process."""
        return self._front.statistics()

    def serve(self, exchange: TensorExchange, keys: Sequence[str], deliver: Delivery) -> None:
        """Another process, at the other end of `exchange`, asks for values; for exchanges only."""
        if not self._has_ended:
            self._exchanges.add(exchange)
            self._table.expect(keys, deliver)

    def arrive(self, values: Iterable[tuple[str, Outcome]]) -> None:
        """Values that were asked for have come; an error in the place of one aborts the step. For exchanges only."""
        send = self._table.send
        for key, outcome in values:
            if isinstance(outcome, PartitaError):
                self.abort(outcome)
            else:
                send(key, *outcome)

    def _ask(self, exchange: TensorExchange, keys: Sequence[str]) -> None:
        """Asks for the values of receives that are about to begin, less those that are spare."""
        self._exchanges.add(exchange)
        if self._spare:
            keys = [key for key in keys if not self._take_spare(key)]
        if keys:
            exchange.ask(self.step, keys)

    def _take_spare(self, key: str) -> bool:
        count = self._spare.get(key, 0)
        if count > 1:
            self._spare[key] = count - 1
        elif count:
            del self._spare[key]
        return count > 0

    def _leave_spare(self, key: str) -> None:
        """The value of a receive that was cancelled is for the next receive of the key."""
        self._spare[key] = self._spare.get(key, 0) + 1

    def _fail_if_lost(self, exchange: TensorExchange) -> None:
        """Aborts the step if nothing can come from there any more."""
        if exchange.error is not None and not self._has_ended:
            self.abort(copy(exchange.error))

    def _end(self) -> None:
        """Drops what exchanges hold for the step, and what refers to its owner; a callback must not ask any more."""
        self._has_ended = True
        self._route, self._on_abort = hosted_here, None
        for exchange in self._exchanges:
            exchange.end_step(self.step)
        self._exchanges.clear()
        self._spare.clear()
