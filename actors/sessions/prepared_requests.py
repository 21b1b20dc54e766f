"""The prepared requests of a session; each signature is prepared once, and again if it was forgotten.

A session keeps a limited number of requests. When a further one is prepared, the request whose last step began longest
ago is forgotten, first those that never ran. Requests with steps under way are kept, even above the limit.

Requests are prepared one after the other, because the node names that partitioning generates are numbered across
requests. A request of a large graph is prepared in a worker thread, so that the event loop goes on; the preparation
stops between two stages when the calling task is cancelled.

Devices that restart make requests out of date, and fail the steps that began before and use them:

restarts so far    [GPU:0]
a step begins      it remembers that it has seen 1
GPU:1 restarts     [GPU:0, GPU:1]; `check(1, devices)` raises if the step uses GPU:1, whatever it knew of GPU:0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from ...collector import collector_paused
from ...errors import InvalidArgumentError, PartitaError
from ..running.pacing import shared_slice
from ..running.threads import check_cancelled, run_in_thread
from .worker_protocol import RequestForgottenError

if TYPE_CHECKING:
    from .preparation import Prepared
    from .requests import RequestNames
    from .worker_protocol import SessionWorkers

DEFAULT_MAX_REQUESTS = 256
Check = Callable[[], object]


def _no_check() -> None:
    pass


class Restarts:
    """The restarts of one session, in order."""

    def __init__(self) -> None:
        self._seen: list[tuple[str, PartitaError]] = []

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, device: str, error: PartitaError) -> None:
        """A device, given by its full name, has restarted; `error` names it."""
        self._seen.append((device, error))

    def check(self, since: int, devices: frozenset[str]) -> None:
        """The error of its restart if one of these devices has restarted after the first `since` restarts."""
        for device, error in self._seen[since:]:
            if device in devices:
                raise type(error)(error.message)


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
        self.num_forgotten = self.num_steps = self._num_clears = 0
        self.num_hits = 0  # steps of requests that had run before
        self.lock = trio.Lock()
        self._prepare = prepare
        self._restarts = restarts
        self._by_signature: dict[RequestNames, Prepared] = {}
        self.find = self._by_signature.get  # an attribute, because every step calls it

    def __len__(self) -> int:
        return len(self._by_signature)

    def begin_step(self, prepared: Prepared) -> int:
        """Counts a step that begins, and returns its number."""
        self.num_steps += 1
        if prepared.last_step:
            self.num_hits += 1
        prepared.last_step = self.num_steps
        return self.num_steps

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
                restarts, clears = len(self._restarts), self._num_clears
                prepared = await run_in_thread(self._prepare_unless_known, signature, check_cancelled)
                if self._num_clears == clears:
                    break
                self._by_signature.pop(signature, None)
                self._restarts.check(restarts, prepared.devices)
            self._forget_others(prepared)  # in this thread, where steps begin
            return prepared

    async def make_ready(self, signature: RequestNames, workers: SessionWorkers, *, in_thread: bool) -> Prepared:
        """As `prepare`; waits until all workers are ready for the request, and raises what they raise."""
        while True:
            await workers.ready()
            with workers.preparing():
                prepared = await self.prepare(signature, in_thread=in_thread)
            try:
                await prepared.request.confirm()
            except RequestForgottenError:  # devices have moved meanwhile
                self.discard(prepared)
            except PartitaError:
                self.discard(prepared)
                raise
            else:
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
            oldest.request.deregister()
            self.num_forgotten += 1

    def has_deregistered(self) -> bool:
        """Whether a worker has deregistered its share of any request."""
        return not all(prepared.request.is_registered for prepared in self._by_signature.values())

    def discard(self, prepared: Prepared) -> None:
        """Forgets a request that the workers could not get ready."""
        if self._by_signature.get(prepared.signature) is prepared:
            del self._by_signature[prepared.signature]
        prepared.request.deregister()

    def clear(self) -> None:
        """Forgets all requests, which are out of date."""
        self._num_clears += 1
        self._by_signature.clear()
