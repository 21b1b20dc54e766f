"""A step of a session in one of its workers, from `StartShare` to `StepsOver`.

    RUNNING --own parts have ended--> ENDED: calls from other workers may still begin parts here --StepsOver--> over
       `---- a node fails: ShareFailed --.        |
                                         v        v
                                    STOPPING <--StopShare-- the session        no thread works for it: ShareStopped

The session answers `ShareFailed` by `StopShare`, also in the worker that failed; so each worker says once that it has
stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....rendezvous.traced import TracedRendezvous
from ...plans.tracing import TraceScope
from ...running.part import start_parts
from ...running.remote.step import RemoteStep
from ...running.trace import statistics_of_records
from ...running.traced.parts import TracedPart
from ..session_traces import add_transfers
from .messages.control import ShareEnded, ShareFailed, ShareStopped

if TYPE_CHECKING:
    from ....errors import PartitaError
    from ....graph import StepStats
    from ....rendezvous.key import Key
    from ....rendezvous.remote import RemoteRendezvous
    from ...running.actor_group import ActorGroup
    from ...running.remote.messages import StepMessage
    from ...running.remote.step import ShareStarter
    from ...running.remote.traffic import Traffic
    from ..registered_graphs import PlacedPlans

_LISTED = 8  # keys without a tensor that the session is told


class HostedStep(RemoteStep):
    """One step in one worker. `say` sends a message of `messages.control` to the session."""

    __slots__ = ("_is_failing_here", "_is_stopping", "_say", "_traced", "share_functions")

    def __init__(
        self,
        number: int,
        rendezvous: RemoteRendezvous,
        own: str,
        tell: Callable[[str, StepMessage], object],
        functions: Callable[[int], ShareStarter],
        group: ActorGroup,
        say: Callable[[tuple[Any, ...]], object],  # Any: the fields of a message
        traffic: Traffic,
        share_functions: int,
    ) -> None:
        """As `RemoteStep`; `traffic` has counted what came before the step began.

        `share_functions` is the number of the functions of its share.
        """
        super().__init__(number, rendezvous, own, tell, functions, group, partial(say, ShareEnded(number)))
        self.traffic = traffic
        self.share_functions = share_functions
        self._say = say
        self._is_stopping = False
        self._is_failing_here = True
        self._traced: TracedRendezvous | None = None

    def start(self, work: PlacedPlans, *, with_trace: bool) -> None:
        """Starts the plans of a share on their actors."""
        if not with_trace:
            start_parts(self, work, [])
            return
        rendezvous: RemoteRendezvous = self.rendezvous  # type: ignore[assignment]  # from `__init__`
        self._traced = rendezvous.trace()
        start_parts(self, work, [], TracedPart, TraceScope(self.records))

    def fail(self, error: PartitaError) -> None:
        """As `RemoteStep.fail`; tells the session, unless that has said so."""
        if self.error is None:
            super().fail(error)
            if self.error is not None and self._is_failing_here:
                self._say(ShareFailed(self.number, self.error))

    def stop(self, error: PartitaError) -> None:
        """The session stops the step with an error, which it knows."""
        self._is_failing_here = False
        self._is_stopping = True
        self.fail(error)
        self._wake_if_settled()

    def _wake_if_settled(self) -> None:
        """As `Step._wake_if_settled`; says that the step has stopped."""
        super()._wake_if_settled()
        if self._is_stopping and not self._in_threads:
            self._is_stopping = False
            self._say(ShareStopped(self.number, tuple(self.rendezvous.waiting()[:_LISTED])))

    def times(self, devices: list[str], is_elsewhere: Callable[[Key], bool]) -> StepStats:
        """The times of the nodes of a traced step, and of the tensors whose senders `is_elsewhere` says of."""
        stats = statistics_of_records(self.records, devices)
        if self._traced is not None:
            add_transfers(stats, self._traced, is_elsewhere)
        return stats


def quiet_numpy() -> np.errstate:
    """For all that runs kernels, which divide by zero as TensorFlow's do."""
    return np.errstate(all="ignore")
