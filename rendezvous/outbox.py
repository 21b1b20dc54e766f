"""Values that have been asked for and wait until they may be sent to another process, in turns of their steps.

    a  b  c      step 3, whose turn it is          room 10: a (4 bytes) and b (4) go, c (4) does not fit and waits;
    d  e         step 5                            nothing overtakes it, else a large value might wait for ever

The values of a step leave in the order in which they came. A turn ends with the value that brings its bytes to
`turn_bytes`, or when nothing of the step waits any more; then the next step has its turn, in a circle. So while a value
waits that has `b` bytes of its own step before it, every other step ships at most `b / turn_bytes + 1` turns, of
`turn_bytes` and one value each: a small tensor is not kept waiting by all the large ones of another step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .messages import Data
from .rendezvous import Received


class _StepQueue:
    """The waiting values of one step, and the numbers of the asks that they answer."""

    __slots__ = ("numbers", "values")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.values: list[Received] = []


class Outbox:
    """The waiting values of all steps for one process."""

    __slots__ = ("_queues", "_size_of", "_turn_bytes", "_used")

    def __init__(self, size_of: Callable[[Received], int], turn_bytes: int) -> None:
        """`size_of` is asked for the bytes of a value, 0 or more, when it may be its turn."""
        self._size_of = size_of
        self._turn_bytes = turn_bytes
        self._queues: dict[int, _StepQueue] = {}  # the first one has its turn
        self._used = 0  # bytes of the current turn that have left

    def put(self, step: int, number: int, value: Received) -> None:
        """Appends a value."""
        queue = self._queues.get(step)
        if queue is None:
            queue = self._queues[step] = _StepQueue()
        queue.numbers.append(number)
        queue.values.append(value)

    def drop(self, step: int) -> None:
        """Drops what waits for a step."""
        if step in self._queues:
            if step == next(iter(self._queues)):
                self._used = 0
            del self._queues[step]

    def clear(self) -> None:
        """Drops everything."""
        self._queues.clear()
        self._used = 0

    def take(self, room: int, *, is_idle: bool) -> list[Data]:
        """Removes what may leave now, at most `room` bytes: one message for each step, in the order of their turns.

        `is_idle` says that no bytes are on their way: then a value leaves alone even if it is larger than `room`, with
        those of no size before it.
        """
        messages: dict[int, Data] = {}
        while self._queues:
            step, queue = next(iter(self._queues.items()))
            count, num_bytes = self._turn(queue.values, room, is_idle)
            if not count:
                break
            is_idle = is_idle and not num_bytes
            room -= num_bytes
            part = Data(step, queue.numbers[:count], queue.values[:count], num_bytes)
            messages[step] = _joined(messages[step], part) if step in messages else part
            del queue.numbers[:count], queue.values[:count]
            self._used += num_bytes
            if not queue.values or self._used >= self._turn_bytes:
                self._end_turn(step, queue)
        return list(messages.values())

    def __len__(self) -> int:
        """How many values wait."""
        return sum(len(queue.values) for queue in self._queues.values())

    def __bool__(self) -> bool:
        return bool(self._queues)

    def _turn(self, values: Sequence[Received], room: int, is_idle: bool) -> tuple[int, int]:
        """How many of the values may leave in what is left of the turn, and their bytes."""
        size_of, left = self._size_of, self._turn_bytes - self._used
        num_bytes = 0
        for count, value in enumerate(values):
            size = size_of(value)
            if num_bytes + size > room and not (is_idle and not num_bytes):
                return count, num_bytes
            num_bytes += size
            if num_bytes >= left:
                return count + 1, num_bytes
        return len(values), num_bytes

    def _end_turn(self, step: int, queue: _StepQueue) -> None:
        self._used = 0
        del self._queues[step]
        if queue.values:
            self._queues[step] = queue


def _joined(first: Data, second: Data) -> Data:
    """Two messages of one step as one."""
    numbers, values = [*first.numbers, *second.numbers], [*first.values, *second.values]
    return Data(first.step, numbers, values, first.num_bytes + second.num_bytes)
