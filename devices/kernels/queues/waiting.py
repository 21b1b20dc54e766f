"""Lines of calls that wait for a change of a resource: dequeues for an element, enqueues for room.

Only the first attempt of a line acts, so calls are served in order. Calls are ended once no attempt can advance any
more. When a step ends its attempts are removed, and what they have done so far is undone.

    attempt   waiting --advance--> waiting, partly done --advance--> ended: its call is done, or has failed
                `--the step ends--> undone (give_up)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from ....errors import PartitaError

End = Callable[[], None]


class WaitingCall(Protocol):
    """What a line needs of a call (`Call`): it is done or fails, and its step may end before."""

    @property
    def step(self) -> object:
        """The step it belongs to, to compare by identity."""

    def done(self, *outputs: Any) -> None:  # Any: tensors of any type
        """Ends the call with these outputs."""

    def fail(self, error: PartitaError) -> None:
        """Ends the call with this error."""

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Calls `callback` if the step ends before the call."""


class Attempt:
    """An action on a resource on behalf of one call; `end`, which ends the call, is None until the action is done."""

    __slots__ = ("call", "end")

    def __init__(self, call: WaitingCall) -> None:
        self.call = call
        self.end: End | None = None

    def advance(self) -> bool:
        """Does the part of the action that is possible now, and returns whether there was any.

        Sets `end` when the action is complete; an error also ends the call.
        """
        raise NotImplementedError

    def give_up(self) -> None:
        """Undoes the part that was done."""


class When(Attempt):
    """Waits until `act` returns outputs instead of None."""

    __slots__ = ("_act",)

    def __init__(self, call: WaitingCall, act: Callable[[], Sequence[object] | None]) -> None:
        super().__init__(call)
        self._act = act

    def advance(self) -> bool:
        result = self._act()
        if result is None:
            return False
        self.end = partial(self.call.done, *result)
        return True


class Lines:
    """The lines of attempts waiting for one resource. Only the thread of the event loop may call it.

    `unordered` is the number of a line, if any, in which all attempts may act, not only the first.
    """

    __slots__ = ("_ends", "_lines", "_unordered")

    def __init__(self, count: int, unordered: int | None = None) -> None:
        self._lines: tuple[deque[Attempt], ...] = tuple(deque() for _ in range(count))
        self._unordered = unordered
        self._ends: deque[End] = deque()

    def __len__(self) -> int:
        """The number of waiting attempts."""
        return sum(map(len, self._lines))

    def join(self, line: int, attempt: Attempt) -> None:
        """Appends an attempt to a line, and lets all that can advance do so."""
        is_alone = not any(self._lines)
        if is_alone:  # and so it acts first, and nobody else after it
            self._act(attempt)
        if not is_alone or attempt.end is None:
            self._lines[line].append(attempt)
            self._settle()
            if attempt.end is None:
                attempt.call.on_cancel(partial(self._remove_step, attempt.call.step))
        self._end_calls()

    def advance(self) -> None:
        """Lets all attempts that can advance do so; to be called after a change of the resource."""
        self._settle()
        self._end_calls()

    def dismiss(self, line: int, end_of: Callable[[Attempt], End]) -> None:
        """Ends all attempts of a line."""
        self._ends.extend(end_of(attempt) for attempt in self._lines[line])
        self._lines[line].clear()

    def _settle(self) -> None:
        while any(self._advance(number) for number in range(len(self._lines))):
            pass

    def _advance(self, number: int) -> bool:
        """Lets the first attempt of a line act, then those that become the first; returns whether anything was done."""
        has_moved, line = False, self._lines[number]
        for attempt in self._may_act(number):
            has_moved |= self._act(attempt)
            if attempt.end is not None:
                line.remove(attempt)
        return has_moved

    def _act(self, attempt: Attempt) -> bool:
        """Lets an attempt act, and notes its end if that has come; returns whether anything was done."""
        try:
            has_moved = attempt.advance()
        except PartitaError as error:
            attempt.give_up()
            attempt.end = partial(attempt.call.fail, error)
        if attempt.end is None:
            return has_moved
        self._ends.append(attempt.end)
        return True

    def _may_act(self, number: int) -> Iterator[Attempt]:
        """The attempts of a line that may act: each one that is the first, or all of an unordered line."""
        line = self._lines[number]
        if number == self._unordered:
            yield from list(line)
            return
        while line:
            first = line[0]
            yield first
            if first.end is None:
                return

    def _end_calls(self) -> None:
        """Ends the calls of complete attempts, which may lead to new attempts and ends."""
        while self._ends:
            self._ends.popleft()()

    def _remove_step(self, step: object) -> None:
        """Removes all attempts of a step that has ended, then undoes them: no undo may serve another of them."""
        for line in self._lines:
            leaving = [attempt for attempt in line if attempt.call.step is step]
            for attempt in leaving:
                line.remove(attempt)
            for attempt in reversed(leaving):
                attempt.give_up()
        self.advance()
