"""Ready rows by priority: who comes next where the caller of a simulation has an order of its own.

The row with the highest priority is next. Of equal ones the next is the one that would be without priorities, so one
priority for all changes nothing:

    ready        a at 0, b at 0, c at 5        a kernel ends at 10
    no order     a, b, c                       by instant, then by number
    c: 1         c, a, b

Among rows of one priority, those of overlapping iterations that take little come first, then all that are not of such
iterations, then the other ones, the last of them first (see `iterations`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import NamedTuple

from .instants import Instants
from .iterations import RowTurn
from .log import Log
from .profile import EndOf
from .streams import Feeder, Lanes, RowName

PriorityOf = Callable[[int], float]
"""the priority of a row; the highest is first"""

_SMALL, _USUAL, _LARGE = range(3)


class _RowPlace(NamedTuple):
    """What decides when a row is next: the least place is first. `turn` is an instant, or a number of a batch."""

    below: float
    part: int
    turn: int
    rank: tuple[int, int]


class _PlacedRow(NamedTuple):
    """A row that is ready, what made it ready, and when."""

    place: _RowPlace
    row: int
    cause: int
    since_ns: int


class RowsByPriority:
    """Ready rows and their causes, a heap by place.

    Rows of iterations that become ready at one instant, while none is taken, are a batch: in the order of the graph.
    """

    __slots__ = ("_batch", "_batch_at", "_heap", "_priority_of", "_turn", "has_rows")

    def __init__(self, priority_of: PriorityOf, turn: Callable[[int], RowTurn]) -> None:
        """`turn` says what decides when a row of an iteration runs."""
        self.has_rows = False
        self._priority_of = priority_of
        self._turn = turn
        self._heap: list[_PlacedRow] = []
        self._batch, self._batch_at = 0, -1

    def add(self, row: int, cause: int, now: int) -> None:
        """Adds a row that has become ready."""
        self._push(_RowPlace(-self._priority_of(row), _USUAL, now, (row, 0)), row, cause, now)

    def add_iteration(self, row: int, cause: int, now: int) -> None:
        """The same for a row of overlapping iterations."""
        turn, below = self._turn(row), -self._priority_of(row)
        if self._batch_at != now:
            self._batch, self._batch_at = self._batch + 1, now
        if turn.is_small:
            place = _RowPlace(below, _SMALL, self._batch, turn.rank)
        else:
            place = _RowPlace(below, _LARGE, -self._batch, (-turn.rank[0], -turn.rank[1]))
        self._push(place, row, cause, now)

    def pop(self, now: int, before: int) -> tuple[int, int]:
        """The next row and the cause of its start: `before` if it had to wait, else what made it ready."""
        ready = heappop(self._heap)
        self._batch_at = -1
        self.has_rows = bool(self._heap)
        return ready.row, ready.cause if ready.since_ns == now else before

    def state(self, name: RowName, now: int) -> Hashable:
        """The rows that wait, by name."""
        rows = tuple((name(ready.row), ready.since_ns == now) for ready in sorted(self._heap))
        return rows, self._batch_at == now

    def _push(self, place: _RowPlace, row: int, cause: int, now: int) -> None:
        heappush(self._heap, _PlacedRow(place, row, cause, now))
        self.has_rows = True


class PrioritisedLanes(Lanes):
    """Lanes that take ready rows by priority, those of iterations too."""

    __slots__ = ("_rows",)

    def __init__(
        self, instants: Instants, log: Log, feeder: Feeder, lanes: int, end_of: EndOf, rows: RowsByPriority
    ) -> None:
        super().__init__(instants, log, feeder, lanes, end_of, rows)
        self._rows = rows

    def take_iteration(self, row: int, cause: int) -> None:
        """Runs a row of overlapping iterations."""
        self._rows.add_iteration(row, cause, self._instants.now())
        self._ask()
