"""What ops run on: the lanes of a CPU, the launch thread and stream of a GPU.

Ready rows are taken in the order in which they became ready, those of one instant by their number; those of loops whose
iterations overlap as `iterations` says. A simulation may have an order of its own, see `prioritised`.

A GPU's kernels are launched one after the other by a host thread and run one after the other in the order of their
launches. With n independent kernels of k ns each, and l ns a launch, the last one ends at

    l + n * k   if k >= l: the stream is never idle            launch  ll
                                                                stream    kkkkkkkkkkkk
    n * l + k   if k < l: each kernel waits for its launch     launch  llllll
                                                                stream    k k k

A chain takes as long, because a kernel is launched once its inputs on the same GPU have been launched: the stream keeps
the order.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from heapq import heappop, heappush
from typing import Protocol

from simpy import Event

from .instants import Instants
from .iterations import RowTurn, WaitingIterations
from .log import KINDS, LAUNCH, Log
from .profile import EndOf

NO_TICKET = 0
"""the ticket of values that wait for no kernel"""


RowName = Callable[[int], Hashable]
"""names a row so that equal rows of different iterations have equal names"""


class Feeder(Protocol):
    """Whoever gives rows to the hardware: the player of a simulation, or the actors of a session."""

    def time_ns(self, row: int) -> int:
        """The time of a row on its device at full speed, asked when a lane takes it or its launch is done."""

    def turn(self, row: int) -> RowTurn:
        """What decides when a row runs that is one of overlapping iterations; asked when it is ready."""

    def launched(self, row: int, ticket: int, entry: int) -> bool:
        """The kernel of a row is launched now, when `entry` ends; its values are there when `ticket` is completed.

        Returns whether nobody needs to hear of its end: `ended` is then not called.
        """

    def ended(self, row: int, entry: int) -> None:
        """A row has ended; `entry` is its number in the log."""


class ComputePlace(Protocol):
    """Where rows run."""

    def take(self, row: int, cause: int) -> None:
        """A row is ready to run here, released by the entry `cause` at this instant."""


class RowQueue(Protocol):
    """Rows that are ready and wait for a lane or a launch."""

    @property
    def has_rows(self) -> bool:
        """Whether any waits."""

    def add(self, row: int, cause: int, now: int) -> None:
        """Adds a row that has become ready."""

    def pop(self, now: int, before: int) -> tuple[int, int]:
        """The next row and the cause of its start: `before` if it had to wait, else what made it ready."""

    def state(self, name: RowName, now: int) -> Hashable:
        """The rows that wait, by name."""


class _Queue:
    """Ready rows and their causes: first those of earlier instants, then those of the present one by number."""

    __slots__ = ("_fresh", "_fresh_at", "_is_sorted", "_waiting", "has_rows")

    def __init__(self) -> None:
        self.has_rows = False  # told, as it is asked more often than rows come and go
        self._waiting: deque[tuple[int, int]] = deque()
        self._fresh: list[tuple[int, int]] = []  # (row, cause) that became ready at `_fresh_at`
        self._fresh_at = -1
        self._is_sorted = True  # from the highest row down

    def add(self, row: int, cause: int, now: int) -> None:
        """Adds a row that has become ready."""
        if self._fresh_at != now:
            if self._fresh:
                self._settle()
            self._fresh_at = now
        self._fresh.append((row, cause))
        self._is_sorted = False
        self.has_rows = True

    def pop(self, now: int, before: int) -> tuple[int, int]:
        """The next row and the cause of its start: `before` if it had to wait, else what made it ready."""
        if self._fresh_at != now and self._fresh:
            self._settle()
        if self._waiting:
            row = self._waiting.popleft()[0]
            self.has_rows = bool(self._waiting or self._fresh)
            return row, before
        if not self._is_sorted:
            self._fresh.sort(reverse=True)
            self._is_sorted = True
        first = self._fresh.pop()
        self.has_rows = bool(self._fresh)
        return first

    def state(self, name: RowName, now: int) -> Hashable:
        """The rows that wait, by name."""
        fresh = tuple(name(row) for row, _ in sorted(self._fresh))
        return tuple(name(row) for row, _ in self._waiting), fresh, self._fresh_at == now

    def _settle(self) -> None:
        """The rows of a past instant have waited."""
        self._fresh.sort()
        self._waiting.extend(self._fresh)
        self._fresh.clear()


class Lanes:
    """The lanes of a device that computes as ops become ready, each one op at a time; the lowest idle lane is first."""

    __slots__ = (
        "_end_of",
        "_feeder",
        "_idle",
        "_instants",
        "_is_asked",
        "_iterations",
        "_last",
        "_log",
        "_queue",
        "of_iterations",
    )

    def __init__(
        self,
        instants: Instants,
        log: Log,
        feeder: Feeder,
        lanes: int,
        end_of: EndOf,
        queue: RowQueue | None = None,
    ) -> None:
        """`of_iterations` takes the rows of overlapping iterations; without a queue the first to be ready is first."""
        self._instants = instants
        self._log = log
        self._feeder = feeder
        self._end_of = end_of
        self._queue = queue or _Queue()
        self._iterations: WaitingIterations | None = None  # few devices have any, so none is asked whether it waits
        self.of_iterations: ComputePlace = _OfIterations(self)
        self._idle = list(range(lanes))  # a heap
        self._last = [-1] * lanes  # by lane: the entry that occupied it last
        self._is_asked = False

    def take(self, row: int, cause: int) -> None:
        """Runs a row as soon as a lane is idle."""
        self._queue.add(row, cause, self._instants.now())
        if self._idle and not self._is_asked:
            self._is_asked = True
            self._instants.second_half(self._fill)

    def take_iteration(self, row: int, cause: int) -> None:
        """The same for a row of overlapping iterations."""
        if self._iterations is None:
            self._iterations = WaitingIterations(self._feeder.turn)
        self._iterations.add(row, cause, self._instants.now())
        self._ask()

    def _ask(self) -> None:
        if self._idle and not self._is_asked:
            self._is_asked = True
            self._instants.second_half(self._fill)

    def state(self, name: RowName) -> Hashable:
        """What decides what happens next, apart from what has begun: equal states go on alike."""
        now = self._instants.now()
        queues = self._queue.state(name, now), self._iterations.state(name, now) if self._iterations else None
        return queues, tuple(sorted(self._idle)), self._is_asked

    def _fill(self) -> None:
        self._is_asked = False
        queue, iterations, idle, log = self._queue, self._iterations, self._idle, self._log
        now = self._instants.now()
        while idle and (queue.has_rows or iterations):
            lane = heappop(idle)
            if iterations and (iterations.has_small or not queue.has_rows):
                row, cause = iterations.pop(now, self._last[lane])
            else:
                row, cause = queue.pop(now, self._last[lane])
            end = self._end_of(now, self._feeder.time_ns(row))
            entry = self._last[lane] = log.record(row * KINDS, now, end, cause)
            if lane:
                log.lanes[entry] = lane
            self._instants.after(end - now, partial(self._end, row, entry, lane))

    def _end(self, row: int, entry: int, lane: int, _: Event) -> None:
        heappush(self._idle, lane)
        self._is_asked = True  # so that what it releases does not ask again
        self._feeder.ended(row, entry)
        self._is_asked = False
        if self._queue.has_rows or self._iterations:
            if self._instants.is_last():
                self._fill()
            else:
                self._is_asked = True
                self._instants.second_half(self._fill)


class _OfIterations:
    """A device as the place where the rows of overlapping iterations run."""

    __slots__ = ("take",)

    def __init__(self, lanes: Lanes) -> None:
        self.take = lanes.take_iteration


class Gpu:
    """A host thread that launches kernels, and the stream that runs them in the order of their launches."""

    __slots__ = (
        "_end_of",
        "_entries",
        "_feeder",
        "_free_at",
        "_instants",
        "_is_asked",
        "_is_launching",
        "_last_kernel",
        "_last_launch",
        "_launch_ns",
        "_log",
        "_parked",
        "_queue",
    )

    def __init__(
        self,
        instants: Instants,
        log: Log,
        feeder: Feeder,
        launch_ns: int,
        end_of: EndOf,
        queue: RowQueue | None = None,
    ) -> None:
        """Without a queue the first kernel to be ready is launched first."""
        self._instants = instants
        self._log = log
        self._feeder = feeder
        self._launch_ns = launch_ns
        self._end_of = end_of
        self._queue = queue or _Queue()
        self._is_asked = self._is_launching = False
        self._last_launch = self._last_kernel = -1  # entries
        self._free_at = 0
        self._entries = array("q", [-1])  # by ticket: the entry of the kernel
        self._parked: dict[int, list[int]] = {}  # by ticket: rows that pass when it is completed

    def take(self, row: int, cause: int) -> None:
        """Launches a row as soon as the host thread is idle."""
        self._queue.add(row, cause, self._instants.now())
        if not self._is_launching and not self._is_asked:
            self._is_asked = True
            self._instants.second_half(self._launch_next)

    def has_completed(self, ticket: int) -> bool:
        """Whether the kernel with this ticket, and so all before it, have ended."""
        return not ticket or self._end_ns(ticket) <= self._instants.now()

    def park(self, row: int, ticket: int) -> None:
        """Records that a row passes, and tells the feeder that it has ended, when the ticket is completed."""
        if ticket not in self._parked:
            self._parked[ticket] = []
            self._instants.after(self._end_ns(ticket) - self._instants.now(), partial(self._complete, ticket))
        self._parked[ticket].append(row)

    def state(self, name: RowName) -> Hashable:
        """What decides what happens next, apart from what has begun: equal states go on alike."""
        now = self._instants.now()
        parked = tuple((self.age(ticket), tuple(map(name, rows))) for ticket, rows in self._parked.items())
        flags = self._is_asked, self._is_launching
        return self._queue.state(name, now), flags, max(self._free_at - now, 0), parked

    def age(self, ticket: int) -> int:
        """How many kernels have been launched since the one with that ticket."""
        return len(self._entries) - ticket

    def _end_ns(self, ticket: int) -> int:
        return self._log.end_ns[self._entries[ticket]]

    def _launch_next(self) -> None:
        self._is_asked = False
        now, queue = self._instants.now(), self._queue
        while queue.has_rows and not self._is_launching:
            row, cause = queue.pop(now, self._last_launch)
            if not self._launch_ns:
                self._enqueue(row, cause)
                continue
            self._is_launching = True
            end = now + self._launch_ns
            self._last_launch = self._log.record(row * KINDS + LAUNCH, now, end, cause)
            self._instants.after(self._launch_ns, partial(self._launch_done, row))

    def _launch_done(self, row: int, _: Event) -> None:
        self._is_launching = False
        self._is_asked = True  # so that what it releases does not ask again
        self._enqueue(row, self._last_launch)
        self._is_asked = False
        if self._queue.has_rows:
            if self._instants.is_last():
                self._launch_next()
            else:
                self._is_asked = True
                self._instants.second_half(self._launch_next)

    def _enqueue(self, row: int, cause: int) -> None:
        """Puts a launched kernel behind those of the stream."""
        now = self._instants.now()
        start, before = (now, cause) if self._free_at <= now else (self._free_at, self._last_kernel)
        self._free_at = end = self._end_of(start, self._feeder.time_ns(row))
        self._last_kernel = entry = self._log.record(row * KINDS, start, end, before)
        self._entries.append(entry)
        # In a chain nobody waits for the end of a kernel but the stream, which knows it: one event less for simpy.
        if not self._feeder.launched(row, len(self._entries) - 1, cause):
            self._instants.after(end - now, partial(self._end, row, entry))

    def _end(self, row: int, entry: int, _: Event) -> None:
        self._feeder.ended(row, entry)

    def completes(self, action: partial[object]) -> bool:
        """Whether an action, of which the first argument is a ticket, is the end of that kernel for rows that wait."""
        return action.func == self._complete

    def _complete(self, ticket: int, _: Event) -> None:
        now, kernel = self._instants.now(), self._entries[ticket]
        for row in self._parked.pop(ticket):
            self._feeder.ended(row, self._log.record(row * KINDS, now, now, kernel))


class Delays:
    """Rows that hold nothing: any number at a time. With `launches` they count as launched when they end."""

    __slots__ = ("_feeder", "_instants", "_launches", "_log")

    def __init__(self, instants: Instants, log: Log, feeder: Feeder, *, launches: bool = False) -> None:
        self._instants = instants
        self._log = log
        self._feeder = feeder
        self._launches = launches

    def take(self, row: int, cause: int) -> None:
        """Begins to wait."""
        now, time_ns = self._instants.now(), self._feeder.time_ns(row)
        entry = self._log.record(row * KINDS, now, now + time_ns, cause)
        self._instants.after(time_ns, partial(self._end, row, entry))

    def _end(self, row: int, entry: int, _: Event) -> None:
        if not self._launches or not self._feeder.launched(row, NO_TICKET, entry):
            self._feeder.ended(row, entry)
