"""The virtual clock of a session: simulated time, which moves only when nobody can act.

The clock owns the simulated hardware and its log, which the players of all steps under way share. Its task
moves the time to the next event when all of this holds:

- no player has a node left that is ready and not yet given to the hardware;
- no request is being prepared, which would start a step at the present time;
- every other task of the event loop waits, so that none will start a step now.

    PARKED --a step starts, a preparation ends--> WAITING for the tasks of the host --> MOVING
      ^                                             ^          a step has ended --------'|
      `--no step under way, or all of them wait------------------------------------------'

Within MOVING the event loop gets its turn when its slice is used up. A step that waits for another one (a
dequeue, say) does not move the time: it goes on waiting until another step feeds it.

When no step is under way the hardware is given up, with what failed steps have left on it; the next step starts at
the same time on idle hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import trio
from trio.testing import wait_all_tasks_blocked

from ....devices.timing.costs.cache import CostCache
from ....devices.timing.costs.fitted import calibration_of
from ....devices.timing.playing.shared_hardware import SharedHardware

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ....devices.timing.costs.source import CostSource
    from ....devices.timing.playing.player import Player
    from ..pacing import Pacer
    from ..step import Step
    from .record import StepRecord

_MAX_WAIT_S = 0.05  # for tasks of the host that never wait: they must not stop the time


class VirtualClock:
    """The simulated hardware of a session, and the task that moves its time."""

    def __init__(self, cluster: Cluster, cost_source: CostSource, pacer: Pacer, *, keeps_steps: bool = False) -> None:
        """With `keeps_steps` the records of all steps are kept, as long as the clock is."""
        self.records: list[StepRecord] | None = [] if keeps_steps else None
        self.cluster = cluster
        self.cost_source = cost_source
        self.known_costs = CostCache()
        self._pacer = pacer
        self._stage: SharedHardware | None = None
        self._past_ns = 0  # until the present hardware was made
        self._posted: dict[Player, None] = {}  # players that have something to release
        self._steps: set[object] = set()
        self._watched: set[Step] = set()
        self._num_preparing = 0
        self._gives_way = True  # before the next event the tasks of the host act
        self._is_closed = False
        self._changed = trio.Event()

    # Steps

    @property
    def now_ns(self) -> int:
        """Simulated nanoseconds since the session was opened."""
        return self._past_ns + (0 if self._stage is None else self._stage.engine.now())

    @property
    def shared(self) -> SharedHardware:
        """The hardware; it is made for the first of the steps that are under way together."""
        if self._stage is None:
            self._stage = SharedHardware(self.cluster, calibration_of(self.cost_source))
        return self._stage

    def keep(self, record: StepRecord) -> None:
        """Keeps what a step does for the timeline of the session, if that was asked for."""
        if self.records is not None:
            self.records.append(record)

    def step_began(self, step: object) -> None:
        """A step starts at the present time."""
        self._steps.add(step)
        self._gives_way = True
        self.wake()

    def give_way(self) -> None:
        """Lets the tasks of the host act before the time moves on."""
        self._gives_way = True

    def step_ended(self, step: object) -> None:
        """A step is over: its caller may act before the time moves on."""
        self._steps.discard(step)
        self._gives_way = True
        if not self._steps and self._stage is not None:
            self._past_ns += self._stage.engine.now()
            self._stage = None
            self._posted.clear()

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Stops the time while a request is prepared."""
        self._num_preparing += 1
        try:
            yield
        finally:
            self._num_preparing -= 1
            self._gives_way = True
            self.wake()

    # What steps give to the clock

    def post(self, player: Player) -> None:
        """A player has something to release at the present time."""
        self._posted[player] = None
        self.wake()

    def watch(self, step: Step) -> None:
        """Looks at a step for a deadlock whenever nothing can happen next, until `unwatch`."""
        self._watched.add(step)

    def unwatch(self, step: Step) -> None:
        """Undoes `watch`."""
        self._watched.discard(step)

    def after(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Calls `action` after so many simulated nanoseconds, if a step is under way all the time."""
        shared = self.shared

        def act() -> None:
            if shared is self._stage:
                action()

        shared.engine.after(delay_ns, act)

    # The task

    def wake(self) -> None:
        """Lets the task look again whether it can go on."""
        self._changed.set()

    def shut_down(self) -> None:
        """Ends the task."""
        self._is_closed = True
        self.wake()

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Moves the time until `shut_down`. Shielded from cancellation: the session ends its steps first."""
        with trio.CancelScope(shield=True), np.errstate(all="ignore"):
            while not self._is_closed:
                if not self._can_act():
                    self._look_for_deadlocks()
                    self._changed = trio.Event()
                    await self._changed.wait()
                elif self._gives_way:
                    self._gives_way = False
                    with trio.move_on_after(_MAX_WAIT_S):
                        await wait_all_tasks_blocked()
                else:
                    self._move()
                    await self._pacer.yield_now()

    def _look_for_deadlocks(self) -> None:
        if not self._num_preparing:
            self._watched = {step for step in list(self._watched) if step.look_for_deadlock()}

    def _can_act(self) -> bool:
        return bool(self._steps) and not self._num_preparing and bool(self._posted or self.shared.engine.has_events)

    def _move(self) -> None:
        """Moves the time from event to event until a step has ended, all wait, or the slice is used up."""
        self._settle()
        while self._steps and not self._gives_way and self.shared.engine.next_event():
            self._settle()
            if self._pacer.is_due:
                return

    def _settle(self) -> None:
        """Releases all that can be at the present time."""
        while self._posted:
            player = next(iter(self._posted))
            del self._posted[player]
            player.release_later()
