"""The ways of one process of a session to the others: tensors and messages of steps over one connection each.

    process W1      peers      S, W2
    step 7 sends x on CPU:0, which W2 has asked for    exchange of W2 -> its outbox -> flush -> connection of W2
    W2 posts Ask, Data, OfStep(7, CallBegin)           -> `StepPeer` of W2 -> exchange, or `receive` of its owner

What the exchanges of a process want to post leaves at the end of the instant: after a batch of messages was handled, or
else in the next turn of the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import trio

from ....devices.wire import WireMessage
from ....rendezvous.exchange import BUDGET_BYTES, TensorExchange
from ....rendezvous.messages import Arrived, Ask, Data
from ....rendezvous.rendezvous import Received
from .messages.records import record_from_wire, record_to_wire
from .messages.tensors import EXCHANGE_OPS, exchange_from_wire, exchange_to_wire, size_of_message

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ....errors import PartitaError
    from ....rendezvous.remote import RemoteRendezvous
    from ....rendezvous.rendezvous import Outcome
    from ...running.remote.traffic import Traffic


class ProcessConnection(Protocol):
    """What is needed of a `connection.Connection`."""

    @property
    def process_id(self) -> str:
        """The other process."""

    @property
    def address(self) -> str:
        """Where the worker there listens; "" for the process of a session."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""

    def start(self, on_messages: Callable[[list[WireMessage]], None], on_lost: Callable[[PartitaError], None]) -> None:
        """Says who gets what arrives, and who hears that it has ended, unless it is closed here."""

    def post(self, message: WireMessage) -> None:
        """Sends a message; dropped if the connection has ended."""

    async def aclose(self, reason: str = "") -> None:
        """Writes what was posted, and closes."""

    def abort(self) -> None:
        """Closes at once."""


class StepsHere(Protocol):
    """What peers need of the steps of their process."""

    def find(self, step: int) -> RemoteRendezvous | None:
        """As `StepTables.find`."""

    def traffic_of(self, step: int) -> Traffic | None:
        """The counts of a step; None if it is over."""


class PeerOwner(Protocol):
    """Who has peers: a host, or the session's side."""

    def receive(self, peer: StepPeer, record: Any) -> None:  # Any: a message of `messages.control`
        """Takes a message other than those of the exchange."""

    def served(self) -> None:
        """A batch of messages has been handled: does the work that is ready."""

    def lost(self, peer: StepPeer, error: PartitaError) -> None:
        """The connection has ended from the other side."""


class StepExchange(TensorExchange):
    """An exchange that counts tensors and asked keys in the traffic of their steps."""

    __slots__ = ("_traffic_of",)

    def __init__(
        self,
        post: Callable[[Ask | Data | Arrived], None],
        steps: StepsHere,
        needs_flush: Callable[[], None],
        budget_bytes: int,
    ) -> None:
        super().__init__(post, size_of_message, budget_bytes, needs_flush=needs_flush, find_step=steps.find)
        self._traffic_of = steps.traffic_of

    def ask(self, step: int, keys: Sequence[str]) -> None:
        """As `TensorExchange.ask`."""
        traffic = self._traffic_of(step)
        if traffic is not None:
            traffic.sent += len(keys)
        super().ask(step, keys)

    def take_ask(self, ask: Ask) -> None:
        """As `TensorExchange.take_ask`."""
        traffic = self._traffic_of(ask.step)
        if traffic is not None:
            traffic.received += len(ask.keys)
        super().take_ask(ask)

    def take_data(self, data: Data) -> None:
        """As `TensorExchange.take_data`."""
        traffic = self._traffic_of(data.step)
        if traffic is not None:
            traffic.received += len(data.values)
        super().take_data(data)

    def _ship_one_of(self, step: int, numbers: dict[Hashable, int], key: Hashable, outcome: Outcome) -> None:
        if isinstance(outcome, Received):
            traffic = self._traffic_of(step)
            if traffic is not None:
                traffic.sent += 1
        super()._ship_one_of(step, numbers, key, outcome)


class StepPeer:
    """The way to one other process, `process`; the name of the process of a session is ""."""

    def __init__(self, connection: ProcessConnection, process: str, peers: Peers) -> None:
        self.process = process
        self.connection = connection
        self._peers = peers
        self.exchange = StepExchange(
            self._post_tensors, peers.steps, partial(peers.wants_flush, self), peers.budget_bytes
        )

    def start(self) -> None:
        """Begins to receive."""
        self.connection.start(self._on_messages, self._on_lost)

    def post(self, record: tuple[Any, ...]) -> None:  # Any: a message of `messages.control`
        """Sends a message."""
        self.connection.post(record_to_wire(record))

    def _post_tensors(self, message: Ask | Data | Arrived) -> None:
        self.connection.post(exchange_to_wire(message))

    def _on_messages(self, messages: list[WireMessage]) -> None:
        with self._peers.serving():
            for message in messages:
                if message.header.get("op") not in EXCHANGE_OPS:
                    self._peers.owner.receive(self, record_from_wire(message))
                    continue
                match exchange_from_wire(message):
                    case Ask() as ask:
                        self.exchange.take_ask(ask)
                    case Data() as data:
                        self.exchange.take_data(data)
                    case Arrived() as arrived:
                        self.exchange.take_arrived(arrived)

    def _on_lost(self, error: PartitaError) -> None:
        with self._peers.serving():
            self._peers.owner.lost(self, error)


class Peers:
    """The peers of a process, by name."""

    def __init__(self, owner: PeerOwner, steps: StepsHere, budget_bytes: int = BUDGET_BYTES) -> None:
        self.owner = owner
        self.steps = steps
        self.budget_bytes = budget_bytes
        self.by_process: dict[str, StepPeer] = {}
        self._to_flush: list[StepPeer] = []
        self._token = trio.lowlevel.current_trio_token()
        self._is_serving = False

    def add(self, connection: ProcessConnection, process: str) -> StepPeer:
        """A peer for a connection, in the place of one that is lost; `StepPeer.start` it."""
        peer = self.by_process[process] = StepPeer(connection, process, self)
        return peer

    def wants_flush(self, peer: StepPeer) -> None:
        """The exchange of a peer has something to post at the end of the instant."""
        if not (self._to_flush or self._is_serving):
            self._token.run_sync_soon(self.flush, idempotent=True)
        self._to_flush.append(peer)

    def flush(self) -> None:
        """Posts what waits in all exchanges."""
        while self._to_flush:
            self._to_flush.pop(0).exchange.flush()

    def serving(self) -> _Serving:
        """A block in which messages are handled; then the work is done that is ready, and what waits is posted."""
        return _Serving(self)

    def begin_serving(self) -> bool:
        """Whether messages were not being handled."""
        was_serving, self._is_serving = self._is_serving, True
        return not was_serving

    def end_serving(self) -> None:
        """The last message has been handled."""
        try:
            self.owner.served()
        finally:
            self._is_serving = False
            self.flush()


class _Serving:
    """A block that may be inside itself; a class, because every batch of messages needs one."""

    __slots__ = ("_is_outer", "_peers")

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._is_outer = False

    def __enter__(self) -> None:
        self._is_outer = self._peers.begin_serving()

    def __exit__(self, *_error: object) -> None:
        if self._is_outer:
            self._peers.end_serving()
