"""Queues: elements, each a tuple of tensors, that some steps enqueue and others dequeue.

Calls are served in the order in which they came. A call that takes many elements blocks those behind it and takes
elements as they come, so it can take more than the queue has room for; if its step ends, they are put back.

    open --close--> closing (earlier enqueues still wait for room) --> closed (only dequeues of remaining elements)
      `--close and cancel pending enqueues--> closed
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ....errors import CancelledError, InvalidArgumentError, OutOfRangeError
from ....graph.analysis.dims import fits, shape_text
from ....graph.dtypes import Array, DataType, Shape, numpy_dtype
from ..arrays.slicing import empty_of
from ..checks import require
from ..random import philox
from ..registry import Call
from .waiting import Attempt, End, Lines, WaitingCall

Element = tuple[Array, ...]
_PUTTING, _TAKING = range(2)
_WORDS = 256  # random words drawn at once


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """The types and shapes of a queue's elements (no shapes: any) and its capacity."""

    capacity: int
    types: tuple[DataType, ...]
    shapes: tuple[Shape, ...]


class Queue:
    """A queue that gives elements out in the order in which they came. `name` is for messages."""

    kind = "FIFOQueue"
    kind_of_batches = "FIFOQueue"  # the queue's name in messages about batches

    def __init__(self, name: str, form: QueueSpec) -> None:
        self.name = name
        self.form = form
        self.is_closed = False
        self.lines = Lines(2)
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def available(self) -> int:
        """The number of elements that may be taken now."""
        return len(self)

    def put(self, element: Element) -> None:
        """Adds an element, regardless of the capacity."""
        self._elements.append(element)

    def take(self) -> Element:
        """Removes the next element."""
        return self._elements.popleft()

    def put_back(self, elements: Sequence[Element]) -> None:
        """Puts back elements that were taken, in the order in which they were taken."""
        self._elements.extendleft(reversed(elements))

    def enqueue(self, call: Call, element: Element) -> None:
        """Adds one element, as soon as there is room; CancelledError once the queue is closed."""
        self._check(element, self.form.shapes)
        self.lines.join(_PUTTING, _Putting(call, self, [element]))

    def enqueue_many(self, call: Call, batch: Element) -> None:
        """Adds one element per row of `batch`, in parts if there is not room for all at once."""
        rows = len(batch[0]) if batch[0].ndim else None
        self._check(batch, [None if shape is None else (rows, *shape) for shape in self.form.shapes])
        for i, component in enumerate(batch):
            length = component.shape[0] if component.ndim else None
            if rows is None or length != rows:
                raise InvalidArgumentError(
                    "All input tensors must have the same size in the 0th dimension. "
                    f"Component {i} has {length}, and should have {rows}"
                )
        if rows:
            # Copies: a row that is a view would keep the whole batch in memory.
            elements = [tuple(component[row, ...].copy() for component in batch) for row in range(rows)]
            self.lines.join(_PUTTING, _Putting(call, self, elements))
        else:
            call.done()

    def dequeue(self, call: WaitingCall) -> None:
        """Takes one element, as soon as there is one; OutOfRangeError if the queue is closed and empty."""
        self.lines.join(_TAKING, _Taking(call, self, 1, lambda elements: elements[0], self.kind))

    def dequeue_many(self, call: Call, count: int, *, fewer_if_closed: bool) -> None:
        """Takes a batch of `count` elements; with `fewer_if_closed` a closed queue gives all it has."""
        require(
            len(self.form.shapes) == len(self.form.types),
            f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes.",
        )
        if count:
            least = 1 if fewer_if_closed else count
            self.lines.join(_TAKING, _Taking(call, self, count, self.joined, self.kind_of_batches, least))
        else:
            call.done(*self.joined(()))

    def close(self, call: Call, *, cancel_pending: bool) -> None:
        """Closes the queue: after the enqueues that came before, or without them if `cancel_pending`."""
        if cancel_pending:
            self.lines.dismiss(_PUTTING, _cancelled)
            self.is_closed = True
            self.lines.advance()
            call.done()
        else:
            self.lines.join(_PUTTING, _Closing(call, self))

    def joined(self, elements: Sequence[Element]) -> Element:
        """The batch of these elements, one per row."""
        return tuple(
            _joined([element[i] for element in elements], dtype, [size or 0 for size in shape or ()])
            for i, (dtype, shape) in enumerate(zip(self.form.types, self.form.shapes, strict=True))
        )

    def _check(self, components: Element, expected: Iterable[Shape]) -> None:
        for i, (component, shape) in enumerate(zip(components, expected, strict=False)):
            if not fits(component.shape, shape):
                raise InvalidArgumentError(
                    f"Shape mismatch in tuple component {i}. "
                    f"Expected {shape_text(shape)}, got {shape_text(component.shape)}"
                )


class ShuffleQueue(Queue):
    """A queue that gives elements out at random; while it is open, `least` elements must remain after a take."""

    kind = kind_of_batches = "RandomShuffleQueue"

    def __init__(self, name: str, form: QueueSpec, least: int, seeds: tuple[int, int], start: philox.Position) -> None:
        super().__init__(name, form)
        self.least = least
        self.seeds = seeds
        self._place = start
        self._words: list[int] = []
        self._bag: list[Element] = []

    def __len__(self) -> int:
        return len(self._bag)

    def available(self) -> int:
        """As in `Queue`."""
        return len(self) if self.is_closed else len(self) - self.least

    def put(self, element: Element) -> None:
        """As in `Queue`."""
        self._bag.append(element)

    def take(self) -> Element:
        """As in `Queue`. The last element moves to the place of the one that is taken, as in TensorFlow."""
        bag, place = self._bag, self._random() % len(self._bag)
        bag[place], element = bag[-1], bag[place]
        del bag[-1]
        return element

    def put_back(self, elements: Sequence[Element]) -> None:
        """As in `Queue`; the position of an element does not matter."""
        self._bag.extend(elements)

    def _random(self) -> int:
        """The next word of the Philox stream."""
        if not self._words:
            blocks = philox.stream(self._place, _WORDS // 4)
            self._place = self._place.skipped(len(blocks))
            self._words = blocks.reshape(-1)[::-1].tolist()
        return self._words.pop()


class PaddingQueue(Queue):
    """A queue whose elements may differ in sizes; a batch pads them with zeros to the largest."""

    kind_of_batches = "PaddingFIFOQueue"

    def joined(self, elements: Sequence[Element]) -> Element:
        """As in `Queue`."""
        types, shapes = self.form.types, self.form.shapes
        columns = [[element[i] for element in elements] for i in range(len(types))]
        return tuple(
            _joined(column, dtype, [_largest(column, axis, size) for axis, size in enumerate(shape or ())])
            for column, dtype, shape in zip(columns, types, shapes, strict=True)
        )


@dataclass(frozen=True, slots=True)
class _Ranked:
    priority: int
    element: Element

    def __lt__(self, other: _Ranked) -> bool:
        return self.priority < other.priority


class PriorityQueue(Queue):
    """A queue that gives out the element with the smallest first component.

    Of equal ones the one that a binary heap gives, as in TensorFlow.
    """

    kind = kind_of_batches = "PriorityQueue"

    def __init__(self, name: str, form: QueueSpec) -> None:
        super().__init__(name, form)
        self._heap: list[_Ranked] = []

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, element: Element) -> None:
        """As in `Queue`."""
        heapq.heappush(self._heap, _Ranked(int(element[0]), element))

    def take(self) -> Element:
        """As in `Queue`."""
        return heapq.heappop(self._heap).element

    def put_back(self, elements: Sequence[Element]) -> None:
        """As in `Queue`."""
        for element in elements:
            self.put(element)


class _Putting(Attempt):
    """Elements that wait for room."""

    __slots__ = ("_next", "elements", "queue")

    def __init__(self, call: Call, queue: Queue, elements: list[Element]) -> None:
        super().__init__(call)
        self.queue = queue
        self.elements = elements
        self._next = 0

    def advance(self) -> bool:
        queue, first = self.queue, self._next
        if queue.is_closed:
            raise CancelledError(f"{queue.kind} '{queue.name}' is closed.")
        while self._next < len(self.elements) and len(queue) < queue.form.capacity:
            queue.put(self.elements[self._next])
            self._next += 1
        if self._next == len(self.elements):
            self.end = self.call.done
        return self._next > first


class _Closing(Attempt):
    """Closes the queue after the enqueues that came before."""

    __slots__ = ("queue",)

    def __init__(self, call: Call, queue: Queue) -> None:
        super().__init__(call)
        self.queue = queue

    def advance(self) -> bool:
        if self.queue.is_closed:
            raise CancelledError(f"Queue '{self.queue.name}' is already closed.")
        self.queue.is_closed = True
        self.end = self.call.done
        return True


def _cancelled(attempt: Attempt) -> End:
    """The end of an attempt that is dismissed when the queue is closed at once; a pending close is then done."""
    if isinstance(attempt, _Closing):
        return attempt.call.done
    return partial(attempt.call.fail, CancelledError("Enqueue operation was cancelled"))


class _Taking(Attempt):
    """Waits for `count` elements; `least` are enough if no others can come."""

    __slots__ = ("count", "kind", "least", "queue", "result", "taken")

    def __init__(
        self,
        call: WaitingCall,
        queue: Queue,
        count: int,
        result: Callable[[Sequence[Element]], Element],
        kind: str,
        least: int = 1,
    ) -> None:
        super().__init__(call)
        self.queue = queue
        self.count = count
        self.result = result
        self.kind = kind
        self.least = least
        self.taken: list[Element] = []

    def advance(self) -> bool:
        queue, taken, before = self.queue, self.taken, len(self.taken)
        if queue.is_closed and len(queue) < self.count - before:
            if before + len(queue) < self.least:
                raise OutOfRangeError(
                    f"{self.kind} '{queue.name}' is closed and has insufficient elements "
                    f"(requested {self.count - before}, current size {len(queue)})"
                )
            self.count = before + len(queue)
        while len(taken) < self.count and queue.available() > 0:
            taken.append(queue.take())
        if len(taken) == self.count:
            self.end = partial(self.call.done, *self.result(taken))
        return len(taken) > before

    def give_up(self) -> None:
        self.queue.put_back(self.taken)
        self.taken = []


def _largest(rows: Sequence[Array], axis: int, size: int | None) -> int:
    """The size along an axis: `size` if it is known, else the largest of the rows."""
    return max((row.shape[axis] for row in rows), default=0) if size is None else size


def _joined(rows: Sequence[Array], dtype: DataType, sizes: Sequence[int]) -> Array:
    """Rows in one array of the given sizes, padded with zeros or empty strings."""
    batch = empty_of((len(rows), *sizes), numpy_dtype(dtype))
    for number, row in enumerate(rows):
        place: tuple[Any, ...] = (number, *map(slice, row.shape), ...)  # Any: indices of several kinds
        batch[place] = row
    return batch
