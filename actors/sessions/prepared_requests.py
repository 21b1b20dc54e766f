"""The prepared requests of a session; each signature is prepared once.

Requests are prepared one after the other, because the node names that partitioning generates are numbered across
requests. A request of a large graph is prepared in a worker thread, so that the event loop goes on; the preparation
stops between two stages when the calling task is cancelled.
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


def _no_check() -> None:
    pass


class PreparedRequests:
    """The prepared requests of one session, by signature. Changes of the session's graph are made under `lock`."""

    def __init__(self, prepare: Callable[[Signature, Check], Prepared]) -> None:
        """`prepare` prepares a request on the session's current graph and calls its second argument between stages.

        That check raises if the request is no longer needed.
        """
        self.lock = trio.Lock()
        self._prepare = prepare
        self._by_signature: dict[Signature, Prepared] = {}
        self.find = self._by_signature.get  # an attribute, because every step calls it

    def __len__(self) -> int:
        return len(self._by_signature)

    async def prepare(self, signature: Signature, *, in_thread: bool) -> Prepared:
        """The prepared request; waits until others are prepared. Raises as `prepare_now`."""
        prepared = self.find(signature)
        if prepared is not None:
            return prepared
        async with self.lock:
            if in_thread:
                return await trio.to_thread.run_sync(self.prepare_now, signature, trio.from_thread.check_cancelled)
            return self.prepare_now(signature)

    def prepare_now(self, signature: Signature, check: Check = _no_check) -> Prepared:
        """The prepared request, without waiting for others; raises what preparation and `check` raise."""
        prepared = self.find(signature)
        if prepared is None:
            with collector_paused():
                prepared = self._by_signature[signature] = self._prepare(signature, check)
        return prepared

    def has_deregistered(self) -> bool:
        """Whether a worker has deregistered its share of any request."""
        return not all(request.is_registered for request in self._by_signature.values())

    def clear(self) -> None:
        self._by_signature.clear()
