"""The prepared requests of a session; each signature is prepared once, and again if it was forgotten.

A session keeps a limited number of requests. When a further one is prepared, the request whose last step began longest
ago is forgotten, first those that never ran. Requests with steps under way are kept, even above the limit.

Requests are prepared one after the other, because the node names that partitioning generates are numbered across
requests. A request of a large graph is prepared in a worker thread, so that the event loop goes on; the preparation
stops between two stages when the calling task is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from ...collector import collector_paused
from ...errors import InvalidArgumentError
from ..running.pacing import shared_slice
from ..running.threads import check_cancelled, run_in_thread

if TYPE_CHECKING:
    from .preparation import Prepared
    from .requests import RequestNames
    from .restarts import Restarts

DEFAULT_MAX_REQUESTS = 256
Check = Callable[[], object]


def _no_check() -> None:
    pass


class PreparedRequests:
    """The prepared requests of one session, by signature. Changes of the session's graph are made under `lock`."""

    def __init__(self, prepare: Callable[[RequestNames, Check], Prepared], restarts: Restarts, limit: int) -> None:
        """`prepare` prepares a request on the session's current graph and calls its second argument between stages.

        That check raises if the request is no longer needed. At most `limit` requests are kept; InvalidArgumentError
        for a limit below 1.
        """
        if limit < 1:
            raise InvalidArgumentError(f"max_requests = {limit}: a session keeps at least the request that it runs")
        self.limit = limit
        self.num_forgotten = 0
        self.lock = trio.Lock()
        self._prepare = prepare
        self._restarts = restarts
        self._by_signature: dict[RequestNames, Prepared] = {}
        self.find = self._by_signature.get  # an attribute, because every step calls it

    def __len__(self) -> int:
        return len(self._by_signature)

    async def prepare(self, signature: RequestNames, *, in_thread: bool) -> Prepared:
        """The prepared request; waits until others are prepared. Raises as `prepare_now`.

        A device that restarts meanwhile makes it out of date: AbortedError if it uses the device, else it is prepared
        again.
        """
        prepared = self.find(signature)
        if prepared is not None:
            return prepared
        async with self.lock:
            if not in_thread:
                await shared_slice().yield_if_due()
                return self.prepare_now(signature)
            while True:
                restarts = len(self._restarts)
                prepared = await run_in_thread(self._prepare_unless_known, signature, check_cancelled)
                if len(self._restarts) == restarts:
                    break
                self._by_signature.pop(signature, None)
                self._restarts.check(restarts, prepared.devices)
            self._forget_others(prepared)  # in this thread, where steps begin
            return prepared

    def prepare_now(self, signature: RequestNames, check: Check = _no_check) -> Prepared:
        """The prepared request, without waiting for others; raises what preparation and `check` raise."""
        prepared = self._prepare_unless_known(signature, check)
        self._forget_others(prepared)
        return prepared

    def _prepare_unless_known(self, signature: RequestNames, check: Check) -> Prepared:
        prepared = self.find(signature)
        if prepared is None:
            with collector_paused():
                prepared = self._by_signature[signature] = self._prepare(signature, check)
        return prepared

    def _forget_others(self, prepared: Prepared) -> None:
        """Forgets the least recently used requests above the limit; `prepared` is about to run."""
        while len(self._by_signature) > self.limit:
            unused = [other for other in list(self._by_signature.values()) if not (other.running or other is prepared)]
            if not unused:
                return
            oldest = min(unused, key=lambda request: request.last_step)
            del self._by_signature[oldest.signature]
            oldest.deregister()
            self.num_forgotten += 1

    def has_deregistered(self) -> bool:
        """Whether a worker has deregistered its share of any request."""
        return not all(request.is_registered for request in self._by_signature.values())

    def clear(self) -> None:
        self._by_signature.clear()
