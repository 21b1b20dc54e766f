"""A network of tests: processes in one event loop, whose messages are delivered later, in order between any two.

Nothing is encoded. Which pair of processes is served next is drawn, so that a seed gives an interleaving.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from random import Random
from typing import Any

import numpy as np
import trio

from partita.actors.running.remote.traffic import Traffic
from partita.errors import PartitaError
from partita.rendezvous import LocalRendezvous
from partita.rendezvous.key import destination
from partita.rendezvous.rendezvous import Callback, Delivery, Statistics, Waiter

Deliver = Callable[[], None]


class FakeNetwork:
    """Delivers messages, one at a time, from a task that `run` is."""

    def __init__(self, seed: int = 0) -> None:
        self.num_delivered = 0
        self._random = Random(seed)
        self._pairs: dict[tuple[str, str], deque[Deliver]] = {}
        self._task: trio.lowlevel.Task | None = None

    def post(self, source: str, target: str, deliver: Deliver) -> None:
        """Sends something to a process: `deliver` is called later."""
        self._pairs.setdefault((source, target), deque()).append(deliver)
        if self._task is not None:
            task, self._task = self._task, None
            trio.lowlevel.reschedule(task)

    async def run(self) -> None:
        """Delivers for ever."""
        with np.errstate(all="ignore"):
            while True:
                pairs = [pair for pair, waiting in self._pairs.items() if waiting]
                if not pairs:
                    self._task = trio.lowlevel.current_task()
                    await trio.lowlevel.wait_task_rescheduled(self._abort)
                    continue
                self.num_delivered += 1
                self._pairs[self._random.choice(pairs)].popleft()()
                await trio.lowlevel.checkpoint()

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class FakeRendezvous:
    """The rendezvous of a step in one process: what is for a device elsewhere is pushed to the process of that."""

    def __init__(self, own: str, process_of: dict[str, str], post: Callable[[str, str, Any, bool], None]) -> None:
        self.table = LocalRendezvous()
        self.traffic = Traffic()
        self._own = own
        self._process_of = process_of
        self._post = post
        self._error: PartitaError | None = None

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:
        process = self._process_of[destination(str(key))]
        if process == self._own:
            self.table.send(key, value, is_dead)
        elif self._error is not None:
            raise self._error
        else:
            self.traffic.sent += 1
            self._post(process, str(key), value, is_dead)

    def arrived(self, key: str, value: Any, is_dead: bool) -> None:
        """A tensor has come from another process."""
        self.traffic.received += 1
        if self._error is None:
            self.table.send(key, value, is_dead)

    async def recv(self, key: Hashable) -> Any:
        return await self.table.recv(key)

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        return self.table.recv_callback(key, callback)

    def expect(self, keys: Any, deliver: Delivery) -> None:
        self.table.expect(keys, deliver)

    def when_taken(self, key: Hashable, callback: Callable[[], None]) -> bool:
        return self.table.when_taken(key, callback)

    def abort(self, error: PartitaError) -> None:
        self._error = self._error or error
        self.table.abort(error)

    def close(self) -> None:
        self.table.close()

    def forget_error(self) -> None:
        self.table.forget_error()

    def waiting(self) -> list[str]:
        return self.table.waiting()

    def statistics(self) -> Statistics:
        return self.table.statistics()
