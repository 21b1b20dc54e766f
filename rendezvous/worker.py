"""A rendezvous as the worker of one task sees it: what comes from devices of other tasks is looked at first.

Flows in: the rendezvous that the workers of a step share, the incarnations that devices have now, a policy. Flows out:
the same rendezvous. Always holds: what a policy refuses is never waited for; what stays in the task is not looked at
beyond the beginning of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import trio

from ..errors import PartitaError
from .incarnations import Policy, refuse_stale
from .key import source
from .local import SERVED
from .rendezvous import Callback, Received, Rendezvous, Statistics, Waiter


class WorkerRendezvous:
    """The view of one task; `task` is the name of its devices up to the task, `shared` is where all workers meet."""

    __slots__ = ("_beginning", "_incarnation", "_on_abort", "_policy", "send", "shared")

    def __init__(
        self,
        shared: Rendezvous,
        task: str,
        incarnation: Callable[[str], int],
        policy: Policy = refuse_stale,
        on_abort: Callable[[PartitaError], object] | None = None,
    ) -> None:
        """`incarnation` gives the one that a device has now, 0 for a device that does not exist.

        `on_abort` hears of an abort by this worker, after all who wait.
        """
        self.shared = shared
        self.send: Callable[..., None] = shared.send
        self._beginning = f"{task}/"
        self._incarnation = incarnation
        self._policy = policy
        self._on_abort = on_abort

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """As that of `shared`; `callback` gets the error of the policy at once where it has one."""
        refusal = self._refusal(key)
        if refusal is None:
            return self.shared.recv_callback(key, callback)
        callback(refusal)
        return SERVED

    async def recv(self, key: Hashable) -> Received:
        """As that of `shared`; raises the error of the policy where it has one."""
        refusal = self._refusal(key)
        if refusal is not None:
            await trio.lowlevel.checkpoint()
            raise refusal
        return await self.shared.recv(key)

    def abort(self, error: PartitaError) -> None:
        """Ends the rendezvous for all workers."""
        self.shared.abort(error)
        if self._on_abort is not None:
            self._on_abort(error)

    def close(self) -> None:
        """Ends the rendezvous for all workers."""
        self.shared.close()

    def waiting(self) -> list[str]:
        """The keys that `shared` waits for, of whatever worker."""
        return self.shared.waiting()

    def statistics(self) -> Statistics:
        """The counters of `shared`."""
        return self.shared.statistics()

    def _refusal(self, key: Hashable) -> PartitaError | None:
        text = str(key)
        if text.startswith(self._beginning):
            return None
        device, expected = source(text)
        actual = self._incarnation(device)
        return self._policy(device, expected, actual) if actual else None
