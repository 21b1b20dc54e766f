"""Lines of calls that wait for what other calls do to a resource: put into a queue, take out of it, and the like.

Flows in: attempts, each on behalf of one call. Flows out: the ends of these calls. Always holds: in a line only the
first attempt acts, so nobody is overtaken; calls are ended only once all lines have come to rest; no attempt is left of
a step that has ended, and what such an attempt had taken is back where it was.

    attempt   waits --advance--> waits, having done a part --advance--> ended: its call is done, or has failed
                `--the step ends--> gives up
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from ....errors import PartitaError
from ..registry import Call

End = Callable[[], None]


class Attempt:
    """What a call wants to do to a resource. `end` is None while that is not done."""

    __slots__ = ("call", "end")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.end: End | None = None

    def advance(self) -> bool:
        """Does what can be done now, and says whether anything was; sets `end` with the last of it.

        An error it raises is the end too.
        """
        raise NotImplementedError

    def give_up(self) -> None:
        """Takes back what has been done."""


class Lines:
    """The lines in front of one resource. All of it happens in the thread of the event loop.

    `crowded` is the number of one line, if any, in which nobody waits for those before: they only look.
    """

    __slots__ = ("_crowded", "_ends", "_lines")

    def __init__(self, count: int, crowded: int | None = None) -> None:
        self._lines: tuple[deque[Attempt], ...] = tuple(deque() for _ in range(count))
        self._crowded = crowded
        self._ends: deque[End] = deque()

    def __len__(self) -> int:
        """How many attempts are waiting."""
        return sum(map(len, self._lines))

    def join(self, line: int, attempt: Attempt) -> None:
        """Puts an attempt at the end of a line, and has everybody advance who can."""
        self._lines[line].append(attempt)
        self._settle()
        if attempt.end is None:
            attempt.call.on_cancel(partial(self._leave, attempt.call.step))
        self._tell()

    def advance(self) -> None:
        """Has everybody advance who can, as the resource has changed."""
        self._settle()
        self._tell()

    def dismiss(self, line: int, end_of: Callable[[Attempt], End]) -> None:
        """Ends all attempts of a line."""
        self._ends.extend(end_of(attempt) for attempt in self._lines[line])
        self._lines[line].clear()

    def _settle(self) -> None:
        while any(self._advance(number) for number in range(len(self._lines))):
            pass

    def _advance(self, number: int) -> bool:
        """Lets the first of a line act, and those behind it as they become the first; whether anything was done."""
        has_moved, line = False, self._lines[number]
        for attempt in self._turns(number):
            try:
                has_moved |= attempt.advance()
            except PartitaError as error:
                attempt.give_up()
                attempt.end = partial(attempt.call.fail, error)
            if attempt.end is not None:
                self._ends.append(attempt.end)
                line.remove(attempt)
                has_moved = True
        return has_moved

    def _turns(self, number: int) -> Iterator[Attempt]:
        """Those of a line who may act: each that is the first, or all of a crowd."""
        line = self._lines[number]
        if number == self._crowded:
            yield from list(line)
            return
        while line:
            first = line[0]
            yield first
            if first.end is None:
                return

    def _tell(self) -> None:
        """Ends the calls; which may bring new attempts, and ends, along."""
        while self._ends:
            self._ends.popleft()()

    def _leave(self, step: object) -> None:
        """Forgets the attempts of a step that has ended: all at once, lest one is given what another gives back."""
        for line in self._lines:
            leaving = [attempt for attempt in line if attempt.call.step is step]
            for attempt in leaving:
                line.remove(attempt)
            for attempt in reversed(leaving):
                attempt.give_up()
        self.advance()
