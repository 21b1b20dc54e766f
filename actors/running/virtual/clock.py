"""The virtual clock of a session: simulated time, which moves only when nobody can act.

The clock owns the simulated hardware. Graphs that run give it their ready nodes, and hear from it when these begin and
end. Its task moves the time to the next event when all of this holds:

- no graph has a node left that is ready and not yet given to the hardware;
- no request is being prepared, which would start a step at the present time;
- every other task of the event loop waits, so that none will start a step now.

    PARKED --a step starts, a preparation ends--> WAITING for the tasks of the host --> MOVING
      ^                                             ^          a step has ended --------'|
      `--no step under way, or all of them wait------------------------------------------'

Within MOVING the event loop gets its turn after the time budget of the session. A step that waits for another one (a
dequeue, say) does not move the time: it goes on waiting until another step feeds it.

When no step is under way the hardware is given up, with what failed steps have left on it; the next step starts at
the same time on idle hardware.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import trio
from trio.testing import wait_all_tasks_blocked

from ....devices.timing.hardware.engine import Engine

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ....devices.timing.costs.source import CostSource
    from ....devices.timing.hardware.engine import Duty
    from ....devices.timing.hardware.iterations import RowTurn
    from ....devices.topology import Route
    from ..executor import Pacer
    from .record import StepRecord

_MAX_WAIT_S = 0.05  # for tasks of the host that never wait: they must not stop the time

Action = Callable[[Any, int], None]
"""takes what to do it with, and the entry of the log that caused it"""


class Running(Protocol):
    """A run of a node on the hardware."""

    row: int

    def begin(self) -> int:
        """The node takes its device now: computes it, and returns its time there in ns."""

    def turn(self) -> RowTurn:
        """What decides when the node runs, if it is one of overlapping iterations."""

    def launched(self, ticket: int, entry: int) -> bool:
        """The kernel has been launched; its values are there once the GPU has completed the ticket.

        Returns whether the run does not need to hear of its end.
        """

    def ended(self, entry: int) -> None:
        """The run has ended; `entry` is its number in the log."""


class VirtualClock:
    """The simulated hardware of a session, and the task that moves its time.

    It is a `streams.Feeder`: the hardware asks it for the time of a row when that begins, and tells it what was
    launched and what has ended.
    """

    def __init__(self, cluster: Cluster, cost_source: CostSource, pacer: Pacer, *, keeps_steps: bool = False) -> None:
        """With `keeps_steps` the records of all steps are kept, as long as the clock is."""
        self.records: list[StepRecord] | None = [] if keeps_steps else None
        self.cluster = cluster
        self.cost_source = cost_source
        self._pacer = pacer
        self._devices = {name: number for number, name in enumerate(cluster.names)}
        self._engine: Engine | None = None
        self._past_ns = 0  # until the present hardware was made
        self.num_rows = 0
        """rows that runs of graphs have reserved"""
        self._running: dict[int, Running] = {}
        self._ready: list[tuple[Action, Any, int]] = []
        self._later: deque[Callable[[], None]] = deque()  # what the beginnings and ends of calls make ready
        self._steps: set[object] = set()
        self._num_preparing = 0
        self._gives_way = True  # before the next event the tasks of the host act
        self._is_closed = False
        self._changed = trio.Event()

    # Steps

    @property
    def now_ns(self) -> int:
        """Simulated nanoseconds since the session was opened."""
        return self._past_ns + (0 if self._engine is None else self._engine.now())

    @property
    def engine(self) -> Engine:
        """The hardware; it is made for the first of the steps that are under way together."""
        if self._engine is None:
            self._engine, self.num_rows = Engine(self.cluster, self), 0
        return self._engine

    def device(self, name: str) -> int:
        """The number of a device on the hardware, by its full name."""
        return self._devices[name]

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
        if not self._steps and self._engine is not None:
            self._past_ns += self._engine.now()
            self._engine = None
            self._running.clear()
            self._ready.clear()
            self._later.clear()

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

    # What graphs that run give to the clock

    def new_rows(self, count: int) -> int:
        """Reserves rows for one run of a graph; returns the first."""
        first = self.num_rows
        self.num_rows += count
        return first

    def post(self, action: Action, item: Any, cause: int) -> None:
        """Calls `action` at the present time, before what was posted earlier and is not done yet."""
        self._ready.append((action, item, cause))
        self.wake()

    def post_later(self, action: Callable[[], None]) -> None:
        """Calls `action` at the present time, after all that was posted, in the order of such calls."""
        self._later.append(action)
        self.wake()

    def start(self, run: Running, duty: Duty, device: int, cause: int, *, overlaps: bool = False) -> None:
        """A node is ready to run on a device; `overlaps` is for those of loops whose iterations do."""
        self._running[run.row] = run
        self.engine.start(run.row, duty, device, cause, overlaps=overlaps)

    def copy(self, run: Running, route: Route, size_bytes: int, cause: int) -> None:
        """The tensor of a receive is there to be copied."""
        self._running[run.row] = run
        self.engine.copy(run.row, route, size_bytes, cause)

    def passes(self, run: Running, cause: int) -> int:
        """A free node passes; returns its entry in the log."""
        return self.engine.passes(run.row, cause)

    def begin(self, run: Running, cause: int) -> None:
        """A deferred node begins to wait."""
        self.engine.begin(run.row, cause)

    def finish(self, run: Running) -> int:
        """A deferred node has waited; returns its entry in the log."""
        return self.engine.finish(run.row)

    def after(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Calls `action` after so many simulated nanoseconds, if a step is under way all the time."""
        engine = self.engine

        def act() -> None:
            if engine is self._engine:
                action()
                self._settle()

        engine.after(delay_ns, act)

    def has_completed(self, device: int, ticket: int) -> bool:
        """Whether a device has run the kernel with a ticket, and all before it."""
        stream = self.engine.streams[device]
        return stream is None or stream.has_completed(ticket)

    def park(self, run: Running, device: int, ticket: int) -> None:
        """A free node ends when the GPU has completed a ticket."""
        stream = self.engine.streams[device]
        assert stream is not None  # only a stream gives tickets
        self._running[run.row] = run
        stream.park(run.row, ticket)

    # The protocol `streams.Feeder`

    def time_ns(self, row: int) -> int:
        """The time of a row on its device; called when it begins."""
        run = self._running.get(row)
        return 0 if run is None else run.begin()

    def turn(self, row: int) -> RowTurn:
        """What decides when a row of overlapping iterations runs."""
        return self._running[row].turn()

    def launched(self, row: int, ticket: int, entry: int) -> bool:
        """The kernel of a row has been launched; returns whether its end tells nobody anything."""
        run = self._running.get(row)
        if run is None:
            return True
        is_over = run.launched(ticket, entry)
        if is_over:
            del self._running[row]
        self._settle()
        return is_over

    def ended(self, row: int, entry: int) -> None:
        """A row has ended."""
        run = self._running.pop(row, None)
        if run is not None:
            run.ended(entry)
            self._settle()

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
                    self._changed = trio.Event()
                    await self._changed.wait()
                elif self._gives_way:
                    self._gives_way = False
                    with trio.move_on_after(_MAX_WAIT_S):
                        await wait_all_tasks_blocked()
                else:
                    self._move()
                    await self._pacer.yield_now()

    def _can_act(self) -> bool:
        return (
            bool(self._steps) and not self._num_preparing and bool(self._ready or self._later or self.engine.has_events)
        )

    def _move(self) -> None:
        """Moves the time from event to event until a step has ended, all wait, or the time budget is used up."""
        pacer = self._pacer
        end = pacer.clock() + pacer.slice_s
        self._settle()
        while self._steps and not self._gives_way and self.engine.next_event():
            self._settle()
            if pacer.clock() > end:
                return

    def _settle(self) -> None:
        """Does all that can be done at the present time, the latest first, as the player of a simulation does."""
        ready = self._ready
        while ready or self._later:
            if ready:
                action, item, cause = ready.pop()
                action(item, cause)
            else:
                self._later.popleft()()
