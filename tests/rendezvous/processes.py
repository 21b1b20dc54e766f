"""Processes in memory: each has its steps and an exchange with every other one, over channels that keep their order.

processes = Processes(2, budget_bytes=8)
rendezvous = processes[1].begin(7)            a key "0>1:x" is sent by process 0 and received by process 1
processes.settle()                            flushes and delivers until nothing moves
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from partita.errors import PartitaError
from partita.rendezvous import Received
from partita.rendezvous.exchange import TensorExchange
from partita.rendezvous.messages import Ask, Data, ExchangeMessage
from partita.rendezvous.remote import RemoteRendezvous
from partita.rendezvous.step_tables import StepTables


def size_of(message: Received) -> int:
    """The size of an array, or the first part of a tuple, which tests use for values of many sizes."""
    value = message.value
    return int(value[0] if isinstance(value, tuple) else getattr(value, "nbytes", 0))


def take(exchange: TensorExchange, message: ExchangeMessage) -> None:
    """Hands a message that has come to an exchange."""
    if isinstance(message, Ask):
        exchange.take_ask(message)
    elif isinstance(message, Data):
        exchange.take_data(message)
    else:
        exchange.take_arrived(message)


class OneProcess:
    """A process: its steps, its exchanges by the number of the other process, and whom it wants to flush."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.steps = StepTables()
        self.exchanges: dict[int, TensorExchange] = {}
        self.wants_flush: list[int] = []

    def route(self, key: str) -> TensorExchange | None:
        """The way to the sender of a key "sender>receiver:name"."""
        sender, arrow, _ = key.partition(">")
        return self.exchanges.get(int(sender)) if arrow else None

    def begin(
        self, step: int, lowest: int = 0, on_abort: Callable[[PartitaError], object] | None = None
    ) -> RemoteRendezvous:
        """Begins a step."""
        return self.steps.begin(step, lowest, self.route, on_abort)

    def flush(self) -> None:
        """The end of an instant."""
        while self.wants_flush:
            self.exchanges[self.wants_flush.pop()].flush()


class Processes(list[OneProcess]):
    """Several processes, and the channels (from, to) between them."""

    def __init__(self, count: int, budget_bytes: int = 1 << 20, at_once: Callable[[], Any] | None = None) -> None:
        """`at_once` is called when something is to be flushed, for tests in which all happens at once."""
        super().__init__(map(OneProcess, range(count)))
        self.channels: dict[tuple[int, int], deque[ExchangeMessage]] = {}
        self.budget_bytes = budget_bytes
        self._at_once = at_once
        for here in self:
            for there in self:
                if here is not there:
                    self._join(here, there.number)

    def _join(self, here: OneProcess, there: int) -> None:
        channel = self.channels[here.number, there] = deque()

        def needs_flush() -> None:
            assert there not in here.wants_flush
            here.wants_flush.append(there)
            if self._at_once is not None:
                self._at_once()

        here.exchanges[there] = TensorExchange(
            channel.append, size_of, self.budget_bytes, needs_flush=needs_flush, find_step=here.steps.find
        )

    def deliver(self, channel: tuple[int, int]) -> None:
        """Hands over the first message of a channel."""
        sender, receiver = channel
        take(self[receiver].exchanges[sender], self.channels[channel].popleft())

    def settle(self) -> None:
        """Flushes and delivers until nothing moves."""
        while any(process.wants_flush for process in self) or any(self.channels.values()):
            for process in self:
                process.flush()
            for channel, messages in self.channels.items():
                while messages:
                    self.deliver(channel)

    def lose(self, first: int, second: int, error: PartitaError) -> list[list[int]]:
        """The connection of two processes breaks; returns the steps that wait for it, of either."""
        self.channels[first, second].clear()
        self.channels[second, first].clear()
        return [self[first].exchanges[second].close(error), self[second].exchanges[first].close(error)]

    def assert_empty(self) -> None:
        """No step is known, nothing waits or is on its way."""
        assert [len(process.steps) for process in self] == [0] * len(self)
        for process in self:
            for exchange in process.exchanges.values():
                statistics = exchange.statistics()
                assert (statistics.bytes_in_flight, statistics.waiting, statistics.asked) == (0, 0, 0)
                assert [len(exchange._asks), len(exchange._asked)] == [0, 0]
        assert not any(self.channels.values())
