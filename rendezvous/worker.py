"""The rendezvous of one worker: it checks the incarnation of the sender when it receives from another task.

All workers of a step share one rendezvous. A receive that the policy (`incarnations`) refuses fails at once. Receives
from devices of the worker's own task are not checked, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import trio

from ..errors import PartitaError
from .incarnations import Policy, refuse_stale
from .key import source
from .local import SERVED
from .rendezvous import Callback, Delivery, Received, Rendezvous, Statistics, Waiter


class WorkerRendezvous:
    """The rendezvous of the worker of `task`, e.g. "/job:worker/replica:0/task:1"; all workers use `shared`."""

    __slots__ = ("_incarnation", "_on_abort", "_policy", "_task_prefix", "send", "shared")

    def __init__(
        self,
        shared: Rendezvous,
        task: str,
        incarnation: Callable[[str], int],
        policy: Policy = refuse_stale,
        on_abort: Callable[[PartitaError], object] | None = None,
    ) -> None:
        """`incarnation` returns the current incarnation of a device, 0 for a device that does not exist.

        `on_abort` is called with the error of an abort by this worker, after all waiters have got it.
        """
        self.shared = shared
        self.send: Callable[..., None] = shared.send
        self._task_prefix = f"{task}/"
        self._incarnation = incarnation
        self._policy = policy
        self._on_abort = on_abort

    def recv_callback(self, key: Hashable, callback: Callback) -> Waiter:
        """As `Rendezvous.recv_callback`; `callback` gets the error of the policy at once if there is one."""
        error = self._policy_error(key)
        if error is None:
            return self.shared.recv_callback(key, callback)
        callback(error)
        return SERVED

    def expect(self, keys: Collection[Hashable], deliver: Delivery) -> None:
        """As `Rendezvous.expect`; `deliver` gets errors of the policy at once."""
        errors = {key: self._policy_error(key) for key in keys}
        self.shared.expect([key for key, error in errors.items() if error is None], deliver)
        for key, error in errors.items():
            if error is not None:
                deliver(key, error)

    async def recv(self, key: Hashable) -> Received:
        """As `Rendezvous.recv`; raises the error of the policy if there is one."""
        error = self._policy_error(key)
        if error is not None:
            await trio.lowlevel.checkpoint()
            raise error
        return await self.shared.recv(key)

    def when_taken(self, key: Hashable, callback: Callable[[], None]) -> bool:
        """As `Rendezvous.when_taken`."""
        return self.shared.when_taken(key, callback)

    def abort(self, error: PartitaError) -> None:
        """Ends the rendezvous for all workers."""
        self.shared.abort(error)
        if self._on_abort is not None:
            self._on_abort(error)

    def close(self) -> None:
        """Ends the rendezvous for all workers."""
        self.shared.close()

    def forget_error(self) -> None:
        """As `Rendezvous.forget_error`, for all workers."""
        self.shared.forget_error()

    def waiting(self) -> list[str]:
        """The keys of waiting receives of all workers."""
        return self.shared.waiting()

    def statistics(self) -> Statistics:
        """What waits now, and the most that has waited, of all workers."""
        return self.shared.statistics()

    def _policy_error(self, key: Hashable) -> PartitaError | None:
        text = str(key)
        if text.startswith(self._task_prefix):
            return None
        device, expected = source(text)
        actual = self._incarnation(device)
        return self._policy(device, expected, actual) if actual else None
