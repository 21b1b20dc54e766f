"""The way to one other process for the tensors of all steps; it is driven by receivers.

A process asks for the keys that it wants, the other one keeps a value until it is asked for, and at most
`budget_bytes` of values are on their way. So `send` never blocks, a sender that runs ahead fills no network, and nobody
stores what nobody wants yet. Two processes, A with the sender and B with two receivers of step 7:

    B  recv x, recv y                       ask(7, [x, y])        wants a flush
    B  flush                                posts Ask(7, first=0, [x, y])
    A  take_ask                             registers receives of x and y in the table of step 7
    A  send(y, [1.0, 2.0])                  the table delivers it: y is ask 1, its value goes to the outbox
    A  flush                                posts Data(7, [1], [[1.0, 2.0]], 16 bytes); 16 bytes are in flight
    B  take_data                            table.send(y, [1.0, 2.0]): the receive ends as if the sender were here
    B  flush                                posts Arrived(16)
    A  take_arrived                         0 bytes are in flight

Asks and values of one instant are merged: whoever owns the connection calls `flush` at the end of the instant, when it
has been told by `needs_flush` that something waits. What always holds:

- A byte is in flight until it has arrived, not until it is used; asks and `Arrived` need no budget, and what arrives is
  taken at once. So no step, however stuck, keeps bytes of another one back.
- The bytes in flight are at most the budget, or one larger value is alone on its way.
- Values of one step leave in the order in which they were delivered to the outbox, hence those of a key in the order
  sent. Steps take turns of an eighth of the budget (`outbox.py`).
- Messages must arrive in the order in which they were posted. `post` must not call back.

Everything is called in the thread of the event loop. Values are opaque here, and errors that come in the place of a
value abort its step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..errors import PartitaError
from .messages import Arrived, Ask, Data, ExchangeMessage
from .outbox import Outbox
from .rendezvous import Outcome, Received

if TYPE_CHECKING:
    from .remote import RemoteRendezvous

BUDGET_BYTES = 64 << 20
_TURNS = 8  # of steps, in a budget: few enough that large tensors travel together, enough that small ones get through


@dataclass(frozen=True, slots=True)
class ExchangeStatistics:
    """What an exchange holds at this moment."""

    bytes_in_flight: int
    """bytes of values posted that the other process has not said to have got"""
    waiting: int
    """values that have been asked for and were not posted yet"""
    asked: int
    """values that were asked for there and have not come"""


class TensorExchange:
    """The way to one other process. It ends with `close`, when the connection is gone."""

    __slots__ = (
        "_arrived_bytes",
        "_asked",
        "_asks",
        "_budget_bytes",
        "_bytes_in_flight",
        "_find_step",
        "_flush_is_wanted",
        "_needs_flush",
        "_next_number",
        "_outbox",
        "_post",
        "error",
    )

    def __init__(
        self,
        post: Callable[[ExchangeMessage], None],
        size_of: Callable[[Received], int],
        budget_bytes: int = BUDGET_BYTES,
        *,
        needs_flush: Callable[[], None],
        find_step: Callable[[int], RemoteRendezvous | None],
    ) -> None:
        """`find_step` is `StepTables.find`; `needs_flush` is called once before each `flush` that has something to do.

        `size_of` gives the bytes of a message as it counts against the budget.
        """
        self._post = post
        self._budget_bytes = budget_bytes
        self._needs_flush = needs_flush
        self._find_step = find_step
        self._flush_is_wanted = False
        self._asks: dict[int, list[str]] = {}  # by step the keys that the next flush asks for
        self._asked: dict[int, dict[int, str]] = {}  # by step and number the keys whose values have not come
        self._next_number = 0
        self._outbox = Outbox(size_of, max(1, budget_bytes // _TURNS))
        self._bytes_in_flight = 0
        self._arrived_bytes = 0  # what the next flush gives back
        self.error: PartitaError | None = None
        """why the connection is gone; each step gets a copy, because it writes its number into its error"""

    def ask(self, step: int, keys: Sequence[str]) -> None:
        """Asks for a value of each key, which will be sent to the table of the step here."""
        if self.error is not None:
            return
        asks = self._asks.get(step)
        if asks is None:
            asks = self._asks[step] = []
        asks.extend(keys)
        self._want_flush()

    def flush(self) -> None:
        """Posts what waits, as far as the budget allows."""
        self._flush_is_wanted = False
        if self._arrived_bytes:
            self._post(Arrived(self._arrived_bytes))
            self._arrived_bytes = 0
        if self._asks:
            asks, self._asks = self._asks, {}
            for step, keys in asks.items():
                first, self._next_number = self._next_number, self._next_number + len(keys)
                self._asked.setdefault(step, {}).update(enumerate(keys, first))
                self._post(Ask(step, first, keys))
        if self._outbox:
            room = self._budget_bytes - self._bytes_in_flight
            for data in self._outbox.take(room, is_idle=not self._bytes_in_flight):
                self._bytes_in_flight += data.num_bytes
                self._post(data)

    def take_ask(self, ask: Ask) -> None:
        """The other process wants values; they leave when they are sent here."""
        rendezvous = self._find_step(ask.step)
        if rendezvous is None or self.error is not None:
            return
        numbers: dict[Hashable, int] = dict(zip(ask.keys, range(ask.first, ask.first + len(ask.keys)), strict=True))
        if len(numbers) == len(ask.keys):
            rendezvous.serve(self, ask.keys, partial(self._ship_one_of, ask.step, numbers))
            return
        for number, key in enumerate(ask.keys, ask.first):  # a key is there twice
            rendezvous.serve(self, (key,), partial(self._ship_one_of, ask.step, {key: number}))

    def take_data(self, data: Data) -> None:
        """Values have come: sends them to the table of their step, which calls the receivers."""
        if self.error is not None:
            return
        if data.num_bytes:
            self._arrived_bytes += data.num_bytes
            self._want_flush()
        asked = self._asked.get(data.step)
        rendezvous = self._find_step(data.step) if asked else None
        if asked and rendezvous is not None:
            rendezvous.arrive(self._keyed(asked, data))

    def take_arrived(self, arrived: Arrived) -> None:
        """The other process has got bytes: as many may follow."""
        if self.error is None:
            self._bytes_in_flight -= arrived.num_bytes
            if self._outbox:
                self._want_flush()

    def end_step(self, step: int) -> None:
        """The step is over here, or aborted: nothing waits for it any more, and what still comes for it is dropped."""
        self._outbox.drop(step)
        self._asks.pop(step, None)
        asked = self._asked.pop(step, None)
        if asked is not None:
            asked.clear()  # `take_data` may be at work on it: one of its receivers ends the step

    def close(self, error: PartitaError) -> list[int]:
        """The connection is gone: drops everything, and all that is still called.

        Returns the steps that wait for values from there; their owner aborts them. Later receives from there get the
        error, too. A second call changes nothing and returns no steps.
        """
        if self.error is not None:
            return []
        self.error = copy(error)  # without its traceback, whose frames would live as long as this
        steps = sorted({*self._asks, *(step for step, asked in self._asked.items() if asked)})
        for step in [*self._asks, *self._asked]:
            self.end_step(step)
        self._outbox.clear()
        self._bytes_in_flight = self._arrived_bytes = 0
        return steps

    def statistics(self) -> ExchangeStatistics:
        """A snapshot; walks what waits."""
        asked = sum(map(len, self._asks.values())) + sum(map(len, self._asked.values()))
        return ExchangeStatistics(self._bytes_in_flight, len(self._outbox), asked)

    def _want_flush(self) -> None:
        if not self._flush_is_wanted:
            self._flush_is_wanted = True
            self._needs_flush()

    def _ship_one_of(self, step: int, numbers: dict[Hashable, int], key: Hashable, outcome: Outcome) -> None:
        """A value that the other process has asked for is there; the error of an abort stays in this process."""
        if isinstance(outcome, Received) and self.error is None:
            self._outbox.put(step, numbers[key], outcome)
            self._want_flush()

    @staticmethod
    def _keyed(asked: dict[int, str], data: Data) -> Iterator[tuple[str, Outcome]]:
        """The values that are still wanted, each with its key; looks one by one, as a value may end its step."""
        for number, value in zip(data.numbers, data.values, strict=True):
            key = asked.pop(number, None)
            if key is not None:
                yield key, value
