"""What happens to a session when a device restarts, and who has to stop.

Flows in: the device's name, the steps under way. Flows out: a cluster with the device in its next incarnation, so that
no rendezvous key of its old life matches one of the new. Always holds: the device remembers nothing; every step that
was under way fails with AbortedError, as any may hold what the device has forgotten, and can simply be run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ...errors import AbortedError

if TYPE_CHECKING:
    from ...devices.cluster import Cluster
    from ...devices.state import SessionTensors
    from ..running.device_actor import DeviceActor
    from ..running.step import Step


class Restarts:
    """The restarts of one session. Steps that run outside of a `Step` ask `check` whether they may go on."""

    def __init__(self) -> None:
        self._errors: list[str] = []

    def __len__(self) -> int:
        return len(self._errors)

    def check(self, seen: int) -> None:
        """AbortedError when a device has restarted since there were `seen` restarts."""
        if len(self) > seen:
            raise AbortedError(self._errors[seen])

    def restart(
        self,
        name: str,
        cluster: Cluster,
        actors: Mapping[str, DeviceActor],
        tensors: SessionTensors,
        steps: Iterable[Step],
    ) -> Cluster:
        """Restarts one device; the cluster after that. Raises InvalidArgumentError for a device it does not have."""
        old = cluster.find(name)
        after = cluster.with_restarted(name)
        self._errors.append(
            f"RecvTensor expects a different device incarnation: {old.incarnation} vs. {after.incarnation(old.name)}. "
            f"{old.name} was restarted under the step; what it held is gone. Initialise it and run the step again"
        )
        for step in list(steps):
            step.fail(AbortedError(self._errors[-1]))
        actors[old.name].binder.state.reset()
        tensors.forget(old.name)
        return after
