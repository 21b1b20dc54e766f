"""What happens when a worker is lost, or is about to close: steps fail or end, and its devices move.

    the connection breaks     every step over the worker fails with one UnavailableError; the session hears of its
                              devices; they are hosted by the live worker with the fewest devices, with empty state
    dask closes the worker    no step begins; the steps under way end; variables travel along; nothing fails
    no worker is left         steps wait in `settled` until one joins; they fail there if none ever will

A worker that cannot reach another one tells the session. If both live, the steps over the two fail, and the two connect
again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING

import trio

from .....errors import PartitaError, UnavailableError
from ..messages import control
from .layouts import least_crowded

if TYPE_CHECKING:
    from ...worker_protocol import DevicesLost
    from .remote_workers import RemoteWorkers
    from .worker_member import WorkerMember

_GRACE_S = 0.05  # in which the session hears itself that a worker is lost which another one has missed
_PAUSE_S = 1.0  # before a process is tried again that was lost, or could not be reached, though dask says it lives

_logger = logging.getLogger(__name__)


class Losses:
    """Moves the devices of one session."""

    def __init__(self, workers: RemoteWorkers) -> None:
        self._workers = workers
        self._lost: DevicesLost = lambda _devices, _error: None
        self._moved: Callable[[], object] = lambda: None
        self._homeless: list[str] = []
        self._num_moving = 0
        self._is_waiting = False
        self._avoided: set[str] = set()
        self._settled = trio.lowlevel.ParkingLot()

    def watch(self, lost: DevicesLost, moved: Callable[[], object]) -> None:
        """As `SessionWorkers.watch`."""
        self._lost, self._moved = lost, moved

    def begin(self) -> None:
        """Tasks can run: does what has waited for that."""
        self._find_homes()
        for member in self._workers.members.values():
            if member.is_retiring:
                self._drain_soon(member)

    def end(self) -> None:
        """The session is closed; its nursery ends what is at work here."""
        self._settled.unpark_all()

    async def settled(self) -> None:
        """Waits until every device has a worker; raises UnavailableError if one never will."""
        while (self._homeless or self._num_moving) and not self._workers.is_closed:
            if self._homeless and self._workers.pool.error is not None:
                raise copy(self._workers.pool.error)
            await self._settled.park()

    def lose(self, member: WorkerMember, cause: PartitaError) -> None:
        """The connection to a worker has ended."""
        if member.is_lost:
            return
        workers = self._workers
        devices = workers.homes.devices_of(member.process)
        member.lose(devices, cause)
        error = member.error
        assert error is not None  # it is lost
        member.peer.exchange.close(error)
        for request in workers.requests_of(member.process):
            request.answered(member.process, error)
        for step in workers.steps_of(member.process):
            step.lose(member, error)
        del workers.members[member.process]
        self._avoided.add(member.process)
        if not workers.is_closed:
            self._homeless += devices
            self._find_homes()
            self._lost(devices, error)

    def peer_lost(self, member: WorkerMember, process: str, error: PartitaError) -> None:
        """A worker cannot reach another one, which may live: if it does not, the session hears of it as soon."""
        self._workers.after(_GRACE_S, partial(self._part, member, process, error))

    def _part(self, member: WorkerMember, process: str, error: PartitaError) -> None:
        """Fails the steps over two workers that have lost each other, unless one of them is lost."""
        other = self._workers.members.get(process)
        if other is None or other.is_lost or member.is_lost or self._workers.is_closed:
            return
        for step in self._workers.steps_of(member.process, process):
            step.fail(
                UnavailableError(
                    f"{member.title} lost the connection to {other.title} ({error.message}); run the step again"
                )
            )
        self._workers.arrange()

    def _find_homes(self) -> None:
        """Moves homeless devices to a live worker, or waits for one."""
        workers = self._workers
        if not self._homeless:
            return
        live = [process for process, member in workers.members.items() if member.can_host]
        if live:
            self._move(self._homeless, least_crowded(workers.homes, live))
            self._homeless = []
            self._tell_settled()
        elif workers.pool.error is not None:
            self._tell_settled()
        elif not self._is_waiting and workers.nursery is not None:
            self._is_waiting = True
            workers.nursery.start_soon(self._wait_for_worker, name="wait for a worker")

    def _move(self, devices: list[str], process: str) -> None:
        self._workers.homes.move(dict.fromkeys(devices, process))
        self._workers.arrange()

    def _tell_settled(self) -> None:
        self._settled.unpark_all()

    @trio.lowlevel.enable_ki_protection
    async def _wait_for_worker(self) -> None:
        """Connects to a worker that is not one of the session's, as soon as there is one."""
        await self._connect_any()
        self._is_waiting = False
        self._find_homes()
        self._moved()

    async def _connect_any(self) -> None:
        """Connects to a live worker that is not one of the session's, unless a member can host devices.

        Returns without one if none will ever join.
        """
        workers = self._workers
        while workers.pool.error is None and not any(member.can_host for member in workers.members.values()):
            others = [each for process, each in workers.pool.live.items() if process not in workers.members]
            worker = next((each for each in others if each.process_id not in self._avoided), None)
            if worker is None:
                with trio.move_on_after(_PAUSE_S) as pause:
                    await workers.pool.changed()
                if pause.cancelled_caught:
                    self._avoided.clear()
                continue
            try:
                await workers.connect(worker)
            except PartitaError as error:
                self._avoided.add(worker.process_id)
                _logger.warning("a worker is not used: %s", error)

    def retires(self, member: WorkerMember) -> None:
        """dask closes a worker: its devices move when its steps have ended."""
        if member.is_retiring or member.is_lost or self._workers.is_closed:
            return
        member.is_retiring = True
        self._num_moving += 1
        self._moved()
        self._drain_soon(member)

    def _drain_soon(self, member: WorkerMember) -> None:
        if self._workers.nursery is not None:
            self._workers.nursery.start_soon(self._drain, member, name="drain of a worker")

    @trio.lowlevel.enable_ki_protection
    async def _drain(self, member: WorkerMember) -> None:
        try:
            await self._leave(member)
        finally:
            self._num_moving -= 1
            self._tell_settled()

    async def _leave(self, member: WorkerMember) -> None:
        """Waits for the steps of a worker, and moves its devices with their variables."""
        workers = self._workers
        while member.num_steps and not member.is_lost:
            await member.changed.park()
        await self._connect_any()
        devices = workers.homes.devices_of(member.process)
        for device in devices:
            member.peer.post(control.TakeVariables(device))
        while not member.is_lost and len(member.taken) < len(devices):
            await member.changed.park()
        await self._connect_any()  # again: dask may be closing the others, too
        live = [process for process, each in workers.members.items() if each.can_host]
        if member.is_lost or not live:
            return
        process = least_crowded(workers.homes, live)
        self._warn(member)
        self._move(devices, process)
        for taken in member.taken.values():
            workers.members[process].peer.post(control.PutVariables(*taken))
        member.peer.post(control.HostClose())
        del workers.members[member.process]
        self._moved()

    def _warn(self, member: WorkerMember) -> None:
        """Says what does not travel."""
        for device, kinds in member.kinds.items():
            left = [kind for kind in kinds if kind != "variables"]
            if left:
                _logger.warning("%s closes; %s lost: %s", member.title, device, ", ".join(left))
