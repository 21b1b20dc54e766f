"""In which order a CPU runs the ops of loops whose iterations overlap: as a thread of TensorFlow's executor does.

The thread goes on with what an op has just released. Kernels that take little run first, in the order in which they
became ready. Of the others the last one to become ready is next, of one instant the last one in the graph; those before
it have to wait on a stack. So the chain that carries a loop on runs ahead, as far as `parallel_iterations` let it, and
what only an iteration needs comes later, with its inputs in memory until then:

    gradient of y = y * w      chain    dy = dy * w        iterations 0 1 2 ... 9
                               later    dw = dw + y * dy   iterations 9 8 ... 0, then 10 to 19 in the same way
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import NamedTuple

MOST_ELEMENTS = 1000
"""assumed: a kernel that reads no more takes less than the 8,000 cycles that TensorFlow's executor calls expensive"""


class RowTurn(NamedTuple):
    """What decides when a row of an iteration runs."""

    is_small: bool
    """whether it takes little"""
    rank: tuple[int, int]
    """the first row of its iteration, and its number in the order of the graph"""


class _Ready(NamedTuple):
    """A row that is ready, what made it ready, and when."""

    row: int
    cause: int
    since_ns: int


class WaitingIterations:
    """The ready rows of iterations that wait for a lane."""

    __slots__ = ("_fresh", "_large", "_small", "_turn")

    def __init__(self, turn: Callable[[int], RowTurn]) -> None:
        """`turn` says what decides when a row runs."""
        self._turn = turn
        self._fresh: list[tuple[RowTurn, _Ready]] = []  # of one instant
        self._small: deque[_Ready] = deque()
        self._large: list[_Ready] = []

    def __bool__(self) -> bool:
        return bool(self._fresh or self._small or self._large)

    @property
    def has_small(self) -> bool:
        """Whether a row waits that takes little."""
        self._settle()
        return bool(self._small)

    def add(self, row: int, cause: int, now: int) -> None:
        """Adds a row that has become ready."""
        if self._fresh and self._fresh[0][1].since_ns != now:
            self._settle()
        self._fresh.append((self._turn(row), _Ready(row, cause, now)))

    def pop(self, now: int, before: int) -> tuple[int, int]:
        """The next row and the cause of its start: `before` if it had to wait, else what made it ready."""
        self._settle()
        row, cause, since_ns = self._small.popleft() if self._small else self._large.pop()
        return row, cause if since_ns == now else before

    def state(self, name: Callable[[int], Hashable], now: int) -> Hashable:
        """The rows that wait, by name."""
        self._settle()
        return tuple(tuple((name(r.row), r.since_ns == now) for r in rows) for rows in (self._small, self._large))

    def _settle(self) -> None:
        """Puts the rows of an instant in their order."""
        self._fresh.sort(key=lambda ready: ready[0].rank)
        for turn, ready in self._fresh:
            (self._small if turn.is_small else self._large).append(ready)
        self._fresh.clear()
