"""Queues: elements, each a tuple of tensors, that some steps put in and others take out.

Flows in: elements, and calls that want some. Flows out: elements, or batches of them. Always holds: who came first is
served first, so one that wants many elements holds up those behind it, and takes them as they come, more than the queue
has room for if need be; an element is in the queue, with one call that is being served, or was taken, never lost.

    open --close--> closing (enqueues that came before still wait for room) --> closed (only what is in can be taken)
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
from .waiting import Attempt, End, Lines

Element = tuple[Array, ...]
_PUTTING, _TAKING = range(2)
_WORDS = 256  # drawn at a time


@dataclass(frozen=True, slots=True)
class Form:
    """What the elements of a queue are, and how many it has room for. No shapes mean that any will do."""

    capacity: int
    types: tuple[DataType, ...]
    shapes: tuple[Shape, ...]


class Queue:
    """A queue that gives elements out in the order in which they came. `name` is for messages."""

    kind = "FIFOQueue"
    kind_of_batches = "FIFOQueue"  # what it calls itself when it is asked for many elements

    def __init__(self, name: str, form: Form) -> None:
        self.name = name
        self.form = form
        self.is_closed = False
        self.lines = Lines(2)
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def available(self) -> int:
        """How many elements may be taken now."""
        return len(self)

    def put(self, element: Element) -> None:
        """Adds an element, room or no room."""
        self._elements.append(element)

    def take(self) -> Element:
        """Removes the element whose turn it is."""
        return self._elements.popleft()

    def put_back(self, elements: Sequence[Element]) -> None:
        """Undoes so many calls of `take`, the first first."""
        self._elements.extendleft(reversed(elements))

    def enqueue(self, call: Call, element: Element) -> None:
        """Puts one element in, as soon as there is room; CancelledError once the queue is closed."""
        self._check(element, self.form.shapes)
        self.lines.join(_PUTTING, _Putting(call, self, [element]))

    def enqueue_many(self, call: Call, batch: Element) -> None:
        """Puts in as many elements as `batch` has rows, in parts if there is no room for all at once."""
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
            # Copies: a row that is a view would keep the whole batch for as long as it is in the queue.
            elements = [tuple(component[row, ...].copy() for component in batch) for row in range(rows)]
            self.lines.join(_PUTTING, _Putting(call, self, elements))
        else:
            call.done()

    def dequeue(self, call: Call) -> None:
        """Takes one element, as soon as there is one; OutOfRangeError once there can be none any more."""
        self.lines.join(_TAKING, _Taking(call, self, 1, lambda elements: elements[0], self.kind))

    def dequeue_many(self, call: Call, count: int, *, fewer_if_closed: bool) -> None:
        """Takes a batch of `count` elements, of what is left where they may be fewer and the queue is closed."""
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
        """A batch that has the elements as its rows."""
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
    """A queue that gives out any of its elements, `least` of which, while it is open, remain to choose from."""

    kind = kind_of_batches = "RandomShuffleQueue"

    def __init__(self, name: str, form: Form, least: int, seeds: tuple[int, int], start: philox.Position) -> None:
        super().__init__(name, form)
        self.least = least
        self.seeds = seeds
        self._place = start
        self._words: list[int] = []
        self._bag: list[Element] = []

    def __len__(self) -> int:
        return len(self._bag)

    def available(self) -> int:
        """As of any queue."""
        return len(self) if self.is_closed else len(self) - self.least

    def put(self, element: Element) -> None:
        """As of any queue."""
        self._bag.append(element)

    def take(self) -> Element:
        """As of any queue. The last element takes the place of the one that is given out, as in TensorFlow."""
        bag, place = self._bag, self._random() % len(self._bag)
        bag[place], element = bag[-1], bag[place]
        del bag[-1]
        return element

    def put_back(self, elements: Sequence[Element]) -> None:
        """As of any queue; where they are makes no difference."""
        self._bag.extend(elements)

    def _random(self) -> int:
        """The next word of the Philox stream."""
        if not self._words:
            blocks = philox.stream(self._place, _WORDS // 4)
            self._place = self._place.skipped(len(blocks))
            self._words = blocks.reshape(-1)[::-1].tolist()
        return self._words.pop()


class PaddingQueue(Queue):
    """A queue whose elements may differ in sizes; in a batch they are padded with zeros to the largest."""

    kind_of_batches = "PaddingFIFOQueue"

    def joined(self, elements: Sequence[Element]) -> Element:
        """As of any queue."""
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

    Among equals those of a binary heap's choice, which is how TensorFlow does it.
    """

    kind = kind_of_batches = "PriorityQueue"

    def __init__(self, name: str, form: Form) -> None:
        super().__init__(name, form)
        self._heap: list[_Ranked] = []

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, element: Element) -> None:
        """As of any queue."""
        heapq.heappush(self._heap, _Ranked(int(element[0]), element))

    def take(self) -> Element:
        """As of any queue."""
        return heapq.heappop(self._heap).element

    def put_back(self, elements: Sequence[Element]) -> None:
        """As of any queue."""
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
    """Waits for those who came before, and closes the queue."""

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
    """The end of an attempt in front of a queue that is closed at once: nobody needs to close it any more."""
    if isinstance(attempt, _Closing):
        return attempt.call.done
    return partial(attempt.call.fail, CancelledError("Enqueue operation was cancelled"))


class _Taking(Attempt):
    """Waits for `count` elements; `least` are enough if no others can come."""

    __slots__ = ("count", "kind", "least", "queue", "result", "taken")

    def __init__(
        self,
        call: Call,
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
    """The size that rows have along an axis, the largest where it is not `size` for all."""
    return max((row.shape[axis] for row in rows), default=0) if size is None else size


def _joined(rows: Sequence[Array], dtype: DataType, sizes: Sequence[int]) -> Array:
    """Rows of up to these sizes in one array, the rest of which is zeros or empty strings."""
    batch = empty_of((len(rows), *sizes), numpy_dtype(dtype))
    for number, row in enumerate(rows):
        place: tuple[Any, ...] = (number, *map(slice, row.shape), ...)  # Any: indices of several kinds
        batch[place] = row
    return batch
