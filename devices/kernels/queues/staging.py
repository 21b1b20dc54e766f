"""Staging areas, in which one step leaves tensors for a later one, and mutexes, which one step at a time can lock.

An area never exceeds its limits of tuples and bytes. A lock is released when it is consumed or no tensor carries it any
more, however its step ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from weakref import finalize

import numpy as np

from ....errors import ResourceExhaustedError
from ....graph.dtypes import Array
from ...state import DEFAULT_CONTAINER, ResourceKey
from ..carried import carried, carrying
from ..checks import require, scalar_of
from ..handles import Element, handle_for, handle_value, resource_of
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from .waiting import Lines, When

_PUTTING, _TAKING, _PEEKING = range(3)
_AREA_TYPE = "N10tensorflow6BufferE"
_MUTEX_TYPE = "N10tensorflow5MutexE"


class Area:
    """A staging area; a limit of 0 (tuples or bytes) means none."""

    def __init__(self, capacity: int, memory_limit: int) -> None:
        self.capacity = capacity
        self.memory_limit = memory_limit
        self.items: deque[Element] = deque()
        self.lines = Lines(3, unordered=_PEEKING)
        self._num_bytes = 0

    def has_room(self, num_bytes: int) -> bool:
        """Whether a tuple of that size may be put in now."""
        return not (self.capacity and len(self.items) >= self.capacity) and not (
            self.memory_limit and self._num_bytes + num_bytes > self.memory_limit
        )

    def put(self, item: Element) -> None:
        """Adds a tuple at the end."""
        self.items.append(item)
        self._num_bytes += num_bytes(item)

    def take(self) -> Element:
        """Removes the first tuple."""
        self._num_bytes -= num_bytes(self.items[0])
        return self.items.popleft()

    def clear(self) -> None:
        """Removes all tuples."""
        self.items.clear()
        self._num_bytes = 0
        self.lines.advance()


def num_bytes(item: Iterable[Array]) -> int:
    """The size of some tensors in memory."""
    return sum(value.nbytes for value in item)


def _area_of(node: Construction) -> Callable[[], Area]:
    """The area of a node's shared name, or else of its own name, made on first use."""
    attrs, state = node.attrs, node.state
    container, name = attrs["container"].decode() or DEFAULT_CONTAINER, attrs["shared_name"].decode() or node.name
    key: ResourceKey = (container, _AREA_TYPE, name)

    def area() -> Area:
        shared: Area = state.resource(key, lambda: Area(int(attrs["capacity"]), int(attrs["memory_limit"])))
        return shared

    return area


@deferred_kernel("Stage")
def stage(node: Construction) -> Start:
    """Puts tensors into the area, as soon as there is room."""
    area_of = _area_of(node)

    def start(call: Call, *values: Array) -> None:
        area, item = area_of(), tuple(map(np.asarray, values))
        size = num_bytes(item)
        if area.memory_limit and size > area.memory_limit:
            raise ResourceExhaustedError(
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging Area with a memory "
                f"limit of '{area.memory_limit}'."
            )

        def put() -> Element | None:
            if not area.has_room(size):
                return None
            area.put(item)
            return ()

        area.lines.join(_PUTTING, When(call, put))

    return start


@deferred_kernel("Unstage")
def unstage(node: Construction) -> Start:
    """Takes the first tuple, as soon as there is one."""
    area_of = _area_of(node)

    def start(call: Call) -> None:
        area = area_of()
        area.lines.join(_TAKING, When(call, lambda: area.take() if area.items else None))

    return start


@deferred_kernel("StagePeek")
def stage_peek(node: Construction) -> Start:
    """The tuple at an index, as soon as there is one; it stays."""
    area_of = _area_of(node)

    def start(call: Call, index: Array) -> None:
        area, place = area_of(), scalar_of(index, "index")
        require(place >= 0, f"index must not be negative, but is {place}")
        area.lines.join(_PEEKING, When(call, lambda: area.items[place] if len(area.items) > place else None))

    return start


@kernel("StageSize")
def stage_size(node: Construction) -> Kernel:
    """The number of tuples."""
    area_of = _area_of(node)
    return lambda: np.int32(len(area_of().items))


@deferred_kernel("StageClear")
def stage_clear(node: Construction) -> Start:
    """Empties the area."""
    area_of = _area_of(node)

    def start(call: Call) -> None:
        area_of().clear()
        call.done()

    return start


class Mutex:
    """A mutex is free, or held by one lock."""

    def __init__(self) -> None:
        self.is_held = False
        self.lines = Lines(1)

    def lock(self) -> tuple[Array] | None:
        """A new lock if the mutex is free, else None."""
        if self.is_held:
            return None
        self.is_held = True
        return (carrying(Lock(self)),)

    def free(self) -> None:
        """Ends the lock; the first call that waits gets the next."""
        self.is_held = False
        self.lines.advance()


class Lock:
    """Holds a mutex until it is released or garbage."""

    def __init__(self, mutex: Mutex) -> None:
        self.release = finalize(self, mutex.free)
        self.release.atexit = False


@kernel("MutexV2")
def mutex(node: Construction) -> Kernel:
    """The handle of the mutex of this container and name."""
    handle, state = handle_for(node, _MUTEX_TYPE), node.state
    value = handle_value(node, handle)

    def put_out() -> object:
        state.resource(handle.key, Mutex)
        return value

    return put_out


@deferred_kernel("MutexLock")
def mutex_lock(node: Construction) -> Start:
    """Waits until the mutex is free, and locks it."""
    mutex_of = resource_of(node, Mutex, _MUTEX_TYPE, "a mutex")

    def start(call: Call, handle: Array) -> None:
        mutex = mutex_of(handle)
        mutex.lines.join(0, When(call, mutex.lock))

    return start


@deferred_kernel("ConsumeMutexLock")
def consume_mutex_lock(node: Construction) -> Start:
    """Releases a lock."""

    def start(call: Call, lock: Array) -> None:
        carried(lock, Lock, "a lock").release()
        call.done()

    return start
