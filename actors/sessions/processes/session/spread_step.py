"""One step over worker processes, as the session has it: it feeds, fetches, and hears of the end.

    start         StartShare to all workers of the step; asks the client device's host for the fetches
                  <- ShareEnded of each, and the fetches: the step is done
    fail          StopShare to all; <- ShareStopped of each: the step has failed, and nothing works for it any more
    wait          returns or raises in these two moments; then StepsOver to all

A worker that is lost counts as one that has ended and has stopped. It is a `Step` whose parts are workers and fetches;
when it fails, the workers that have not stopped yet are what threads are to other steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import trio

from .....devices.wire import size_of
from .....errors import PartitaError
from .....graph import StepStats
from .....rendezvous import Received
from ....running.remote.coordination import StepCoordination
from ....running.remote.traffic import Traffic
from ....running.step import Step
from ..messages import control

if TYPE_CHECKING:
    from .....rendezvous import Outcome
    from .....rendezvous.remote import RemoteRendezvous
    from ....running.remote.messages import StepMessage
    from .remote_request import RemoteRequest
    from .worker_member import WorkerMember


_SMALL_BYTES = 1 << 16  # of feeds that travel with the start of a step: a message each way less


class StepOwner(Protocol):
    """What a step needs of `remote_workers.RemoteWorkers`."""

    def begin(self, step: SpreadStep) -> tuple[RemoteRendezvous, int]:
        """The rendezvous of a new step in this process, and the lowest number of a step that is not over."""

    def ended(self, step: SpreadStep) -> None:
        """The step is over in all processes."""

    def stopped(self) -> None:
        """A worker has stopped to work for a failed step."""

    def incarnation(self, device: str) -> int:
        """The present incarnation of a device."""

    def after(self, seconds: float, callback: Callable[[], None]) -> trio.CancelScope:
        """Calls a function after some seconds, unless the scope is cancelled before."""

    def serving(self) -> Any:  # Any: a block, whose type does not matter
        """A block after which what exchanges want to post is posted."""


class _WorkerParts(Step):
    """The state of a step whose parts are workers and fetches."""

    __slots__ = ("_stopping", "running")

    def __init__(self, number: int, rendezvous: RemoteRendezvous, running: dict[str, WorkerMember]) -> None:
        """`running` are the workers that have not ended, or not stopped yet, by process."""
        super().__init__(number, rendezvous)
        self.running = running

    def fail(self, error: PartitaError) -> None:
        """As `Step.fail`; tells all workers, which then have to stop."""
        if self.error is None and self._unfinished:
            for _ in self.running:
                self.thread_began()
            super().fail(error)
            assert self.error is not None  # it fails now
            for member in self.running.values():
                member.peer.post(control.StopShare(self.number, self.error))


class SpreadStep:
    """The `SessionStep` of workers in other processes."""

    def __init__(self, number: int, request: RemoteRequest, owner: StepOwner, *, with_trace: bool) -> None:
        self.number = number
        self.members = dict(request.members)
        self.traffic = Traffic()
        self._request = request
        self._owner = owner
        self._with_trace = with_trace
        self.rendezvous, self._lowest = owner.begin(self)
        self._state = _WorkerParts(number, self.rendezvous, dict(self.members))
        self._coordination: StepCoordination | None = None
        self._fetched: dict[str, Outcome] = {}
        self._waiting: list[str] = []
        self._ended: set[str] = set()
        self._timers: list[trio.CancelScope] = []
        self._stats: dict[str, StepStats] = {}
        self._reported = trio.lowlevel.ParkingLot()
        self._is_over = False

    def start(
        self,
        _fed: list[Any],
        messages: Iterable[tuple[str, Any]] = (),
        fetches: Iterable[str] = (),
        *,
        awaits_host: bool = False,
    ) -> None:
        """As `SessionStep.start`. A step over a worker that is lost fails at once."""
        keys = list(dict.fromkeys(fetches))
        state = self._state
        state.awaits_host = awaits_host
        with self._owner.serving():
            self._request.post()
            state.begin(len(self.members) + len(keys))
            self.rendezvous.begin(self._request.route, state.fail)
            fed = self._send(dict(messages))
            start = control.StartShare(
                self.number, self._request.handle, self._lowest, self._with_trace, awaits_host, {}
            )
            for member in self.members.values():
                member.peer.post(start._replace(fed=fed) if member is self._request.client else start)
            self.rendezvous.expect(keys, self._arrived)
            for member in self.members.values():
                if member.error is not None:
                    self.lose(member, member.error)

    def _send(self, feeds: dict[str, Any]) -> dict[int, Any]:
        """Leaves feeds at the rendezvous, where the client's device asks for them; returns small ones, by place."""
        if sum(map(size_of, feeds.values())) <= _SMALL_BYTES:
            return {place: feeds[key] for place, key in enumerate(self._request.feeds) if key in feeds}
        for key, value in feeds.items():
            self.rendezvous.send(key, value)
        return {}

    def _arrived(self, key: object, outcome: Outcome) -> None:
        self._fetched[str(key)] = outcome
        if isinstance(outcome, Received):
            self._state.part_ended(key)

    def fail(self, error: PartitaError) -> None:
        """As `StepUnderWay.fail`."""
        with self._owner.serving():
            self._state.fail(copy(error))

    async def wait(self) -> None:
        """As `SessionStep.wait`."""
        try:
            await self._state.wait()
            if self._with_trace:
                await self._gather_times()
        finally:
            self._end()

    async def _gather_times(self) -> None:
        """Asks the workers of a traced step for its times."""
        for member in self.members.values():
            member.peer.post(control.ReportTimes(self.number))
        while any(not member.is_lost and process not in self._stats for process, member in self.members.items()):
            await self._reported.park()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._coordination = None  # it refers to this
            for timer in self._timers:
                timer.cancel()
            for member in self.members.values():
                member.peer.post(control.StepsOver((self.number,)))
            self._owner.ended(self)

    def received(self, keys: Iterable[str]) -> Mapping[str, Outcome]:
        """As `SessionStep.received`."""
        return self._fetched

    def results(self) -> Mapping[int, Any]:
        """As `SessionStep.results`: there is no call frame."""
        return {}

    def statistics(self) -> StepStats:
        """As `SessionStep.statistics`, of the workers in the order of their devices."""
        merged = StepStats()
        for process in self.members:
            merged.MergeFrom(self._stats.get(process, StepStats()))
        return merged

    def waiting(self) -> list[str]:
        """As `SessionStep.waiting`: what workers have told, and what the session waits for itself."""
        own = self.rendezvous.waiting()
        return [*self._waiting, *(key for key in own if key not in self._waiting)]

    def receive(self, member: WorkerMember, record: Any) -> None:  # Any: a message of `messages.control`
        """A worker says something about the step."""
        match record:
            case control.ShareEnded():
                if member.process not in self._ended and self._state.error is None:
                    self._ended.add(member.process)
                    self._state.part_ended(member)
            case control.ShareFailed(_, error):
                self._state.fail(error)
            case control.ShareStopped(_, waiting):
                self._waiting += waiting
                self._stopped(member)
            case control.ShareTimes(_, stats):
                self._stats[member.process] = StepStats.FromString(stats)
                self._reported.unpark_all()
            case control.OfStep(_, message):
                self._coordinate(member, message)

    def lose(self, member: WorkerMember, error: PartitaError) -> None:
        """A worker of the step is lost; `error` says so."""
        self._reported.unpark_all()
        if self._state.error is None:
            self._state.fail(copy(error))
        self._stopped(member)

    def _stopped(self, member: WorkerMember) -> None:
        if self._state.error is not None and self._state.running.pop(member.process, None) is not None:
            self._state.thread_ended()
            self._owner.stopped()

    @property
    def is_stopping(self) -> bool:
        """Whether the step has failed, and a worker may work for it still."""
        return self._state.error is not None and bool(self._state.running)

    def _coordinate(self, member: WorkerMember, message: StepMessage | PartitaError) -> None:
        """Collectives and deadlocks."""
        if isinstance(message, PartitaError):
            self._state.fail(message)
            return
        if self._coordination is None:
            self._coordination = StepCoordination(
                list(self.members),
                self._tell,
                self._owner.incarnation,
                self._after,
                awaits_host=self._state.awaits_host,
            )
            self._coordination.traffic = self.traffic  # which has counted tensors since the step began
        self._coordination.receive(member.process, message)

    def _tell(self, process: str, message: StepMessage) -> None:
        self.members[process].peer.post(control.OfStep(self.number, message))

    def _after(self, seconds: float, callback: Callable[[], None]) -> None:
        if not self._is_over:
            self._timers = [timer for timer in self._timers if not timer.cancel_called]
            self._timers.append(self._owner.after(seconds, partial(self._call, callback)))

    def _call(self, callback: Callable[[], None]) -> None:
        if not self._is_over:
            callback()
