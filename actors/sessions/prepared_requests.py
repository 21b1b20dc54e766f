"""What a session has prepared: every request once, one at a time.

Two requests are never prepared at the same time, because the names that partitioning makes go on counting from one to
the next. A large one is prepared in a worker thread, so that the event loop is not held up, and given up between two of
its stages when whoever waits for it is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from ...graph.collector import collector_paused

if TYPE_CHECKING:
    from .preparation import Prepared
    from .requests import Signature

Check = Callable[[], object]


def _go_on() -> None:
    """The check of what nobody gives up."""


class PreparedRequests:
    """The requests of one session, by signature. Whoever changes the session's graph holds `lock`."""

    def __init__(self, prepare: Callable[[Signature, Check], Prepared]) -> None:
        """`prepare` prepares a request for the session as it is when it is called; raises as `Session.run` does.

        Between stages it calls what it is given, which raises if it must not go on.
        """
        self.lock = trio.Lock()
        self._prepare = prepare
        self._known: dict[Signature, Prepared] = {}
        self.find = self._known.get  # an attribute, as every step of a session asks it

    def __len__(self) -> int:
        return len(self._known)

    async def ready(self, signature: Signature, *, in_thread: bool) -> Prepared:
        """The request, prepared when its turn has come if it was not before; raises as `now`."""
        found = self.find(signature)
        if found is not None:
            return found
        async with self.lock:
            if in_thread:
                return await trio.to_thread.run_sync(self.now, signature, trio.from_thread.check_cancelled)
            return self.now(signature)

    def now(self, signature: Signature, check: Check = _go_on) -> Prepared:
        """The request, prepared at once if it was not before; raises what `prepare` and `check` raise."""
        found = self.find(signature)
        if found is None:
            with collector_paused():
                found = self._known[signature] = self._prepare(signature, check)
        return found

    def are_forgotten(self) -> bool:
        """Whether a worker has forgotten its share of one."""
        return not all(request.is_registered for request in self._known.values())

    def clear(self) -> None:
        """Forgets all requests."""
        self._known.clear()
