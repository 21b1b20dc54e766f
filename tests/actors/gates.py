"""A kernel of Neg that records its threads and can be held up by a test."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from partita.actors import Session
from partita.devices.kernels import registry
from partita.errors import InvalidArgumentError

ALWAYS: dict[str, Any] = {"budget_s": 0, "thread_limit_s": 0}
"""settings of a session in which every kernel is slow, from the second time on"""


class Gate:
    """A kernel of Neg that records its threads; while closed, its first call waits until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert registry.lookup("Neg") is not None  # loads the kernels before one is replaced
        monkeypatch.setitem(registry._FACTORIES, "Neg", lambda _node: self)
        self.threads: set[int] = set()
        self.entered: trio.Event | None = None
        self.opened = threading.Event()
        self.fails = False

    def close(self) -> trio.Event:
        """Has the next call wait; returns what is set when it does."""
        self.entered = trio.Event()
        return self.entered

    def __call__(self, value: Any) -> Any:
        self.threads.add(threading.get_ident())
        if self.entered is not None:
            entered, self.entered = self.entered, None
            trio.from_thread.run_sync(entered.set)
            self.opened.wait()
        if self.fails:
            raise InvalidArgumentError("as asked")
        return -value


async def check_cancelled_in_a_thread(gate: Gate, session: Session, run: Callable[[], Awaitable[object]]) -> None:
    """Cancels a step whose kernel is held up in a thread: it ends only after the thread."""
    ended, scope, entered = False, trio.CancelScope(), gate.close()

    async def step() -> None:
        nonlocal ended
        with scope:
            await run()
        ended = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(step)
        await entered.wait()
        scope.cancel()
        await wait_all_tasks_blocked()
        assert not ended
        gate.opened.set()
    assert scope.cancelled_caught
    assert session.statistics().steps_running == 0
