"""When a loop looks at the clock: seldom while its iterations are short, after each kernel when they are long.

A loop of scalars has iterations of 0.2 us, and reading the clock would cost it a third more. So the looks come after
the first iteration and then after every 16. If the iterations before a look took as long as slow kernels do, the next
ones are watched: their chunks run one by one (`executor.run_in_turns`), which finds the slow kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...plans.plan import Segment
    from ..pacing import Pacer

_BETWEEN = 16  # iterations


class Looks:
    """The looks of one run of a loop.

    `next` is the number of iterations after which `look` must be called; the next iteration runs chunk by chunk if
    `is_watched`.
    """

    __slots__ = ("_pacer", "_previous", "_segments", "_since", "is_watched", "next")

    def __init__(self, pacer: Pacer) -> None:
        self._pacer = pacer
        self._segments: list[Segment] = []
        self._previous, self.next = 0, 1
        self.is_watched = False
        self._since = pacer.clock()

    def add(self, segments: Iterable[Segment]) -> None:
        """Names segments that every iteration runs: the loop is watched until they have run and while some are slow."""
        for segment in segments:
            self._segments.append(segment)
            if segment.slow or not segment.has_run:
                self.is_watched = True

    def look(self) -> bool:
        """Decides about the next iterations; returns whether other tasks must run before them."""
        pacer, number = self._pacer, self.next
        now = pacer.clock()
        if now - self._since > pacer.slow_s * (number - self._previous):
            self.is_watched = True
        elif self.is_watched:
            self.is_watched = any(segment.slow for segment in self._segments)
        self._previous = number
        self.next += 1 if self.is_watched else _BETWEEN - number % _BETWEEN
        self._since = now
        return now > pacer.slice.end
