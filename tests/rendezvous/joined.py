"""Two processes as one rendezvous: sends are on one of them, receives on the other, and messages arrive at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import replace
from typing import Any

from partita.errors import PartitaError
from partita.rendezvous import Callback, Received, Statistics, Waiter
from partita.rendezvous.rendezvous import Delivery
from tests.rendezvous.processes import Processes


class JoinedRendezvous:
    """A `Rendezvous` whose every message crosses from one process to another."""

    def __init__(self, budget_bytes: int = 1 << 20, *, trace: bool = False) -> None:
        self.processes = Processes(2, budget_bytes, at_once=self._settle)
        self._is_settling = False
        self.sender = self.processes[0].begin(1)
        self.receiver = self.processes[1].steps.begin(1, 0, lambda _: self.processes[1].exchanges[0])
        if trace:
            self.sender.trace()
            self.receiver.trace()

    def _settle(self) -> None:
        if not self._is_settling:  # messages keep their order also when a receiver sends
            self._is_settling = True
            try:
                self.processes.settle()
            finally:
                self._is_settling = False

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:
        """Sends in one process."""
        self.sender.send(key, value, is_dead)

    async def recv(self, key: Hashable) -> Received:
        """Receives in the other one."""
        return await self.receiver.recv(key)

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """Receives in the other one."""
        return self.receiver.recv_callback(key, callback)

    def expect(self, keys: Collection[Hashable], deliver: Delivery) -> None:
        """Receives in the other one."""
        self.receiver.expect(keys, deliver)

    def when_taken(self, key: Hashable, callback: Callable[[], None]) -> bool:
        """Asks where the message waits."""
        return self.sender.when_taken(key, callback)

    def abort(self, error: PartitaError) -> None:
        """Ends both."""
        self.sender.abort(error)
        self.receiver.abort(error)

    def close(self) -> None:
        """Ends both."""
        self.sender.close()
        self.receiver.close()

    def forget_error(self) -> None:
        """Of both."""
        self.sender.forget_error()
        self.receiver.forget_error()

    def waiting(self) -> list[str]:
        """What the receiver waits for."""
        return self.receiver.waiting()

    def statistics(self) -> Statistics:
        """What was sent in one process, received in the other, and waits in either."""
        sent, received = self.sender.statistics(), self.receiver.statistics()
        return replace(
            received,
            sends=sent.sends,
            bytes=sent.bytes,
            queued=sent.queued + received.queued,
            dropped=sent.dropped + received.dropped,
        )
