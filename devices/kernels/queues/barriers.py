"""Barriers: elements whose components are inserted one by one under a key, and that can be taken when complete.

Elements are taken in the order in which their keys were first inserted; keys of one insertion share an index. An
insertion that is refused changes nothing.

    open --close--> closed to new keys --cancel pending--> closed to everything, incomplete elements removed
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import CancelledError, InvalidArgumentError, OutOfRangeError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name
from ...state import Variable
from ..checks import require, scalar_of
from ..handles import handle_for, handle_value, resource_of
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from .queue import PriorityQueue, QueueSpec
from .queue_ops import match_forms, signature

BARRIER_TYPE = "N10tensorflow7barrier7BarrierE"  # TensorFlow's name for the class of barriers in messages
_UNLIMITED = 2**31 - 1
_FIRST_INDEX = -(2**63)
_BEFORE = 2  # components of a ready element before its values: index and key


class Barrier:
    """A barrier for elements of the types in `form`; complete elements wait in the queue `ready`."""

    def __init__(self, name: str, form: QueueSpec) -> None:
        self.name = name
        self.form = form
        self.is_closed = False
        types, shapes = (DataType.INT64, DataType.STRING, *form.types), ((), (), *form.shapes)
        self.ready = PriorityQueue(f"{name}_queue", QueueSpec(_UNLIMITED, types, shapes))
        self.incomplete: dict[bytes, tuple[Array, list[Array | None]]] = {}
        self._cancelled = False
        self._index = _FIRST_INDEX

    def insert(self, keys: list[bytes], rows: Array, component: int) -> None:
        """Gives each key the value of one component; complete elements become ready.

        Raises InvalidArgumentError for a key that has this component already, CancelledError for a new key once the
        barrier is closed.
        """
        new = self._check(keys, component)
        shape = self.form.shapes[component]
        require(
            rows.shape[1:] == shape,
            f"Shape mismatch in tuple component {component + _BEFORE}. "
            f"Expected {shape_text(shape)}, got {shape_text(rows.shape[1:])}",
        )
        index = np.array(self._index, np.int64)
        for row, key in enumerate(keys):
            _, values = self.incomplete.setdefault(key, (index, [None] * len(self.form.types)))
            values[component] = rows[row, ...].copy()
        self._index += bool(new)
        for key in keys:
            self._move_if_complete(key)
        self._close_when_done()
        self.ready.lines.advance()

    def _check(self, keys: list[bytes], component: int) -> set[bytes]:
        """The keys that are new; raises unless all may be inserted."""
        new = set(keys) - self.incomplete.keys()
        seen: set[bytes] = set()
        if self._cancelled or (self.is_closed and not self.incomplete):
            raise CancelledError(
                f"Barrier {self.name} is closed.  Pending enqueues cancelled: {int(self._cancelled)}.  "
                f"Number of new insertions: {len(new)}.  Number of incomplete keys: {len(self.incomplete)}."
            )
        for number, key in enumerate(keys):
            if self.is_closed and key in new:
                raise CancelledError(
                    f"Barrier {self.name} is closed, but attempted to insert a brand new key: "
                    f"{key.decode(errors='replace')}.  Pending enqueues cancelled: 0.  Insertion index: {number}.  "
                    f"Number of incomplete keys: {len(self.incomplete)}."
                )
            if key in seen or (key not in new and self.incomplete[key][1][component] is not None):
                raise InvalidArgumentError(
                    f"Key {key.decode(errors='replace')} already has a value for component {component} "
                    f"in barrier {self.name}"
                )
            seen.add(key)
        return new

    def _move_if_complete(self, key: bytes) -> None:
        index, values = self.incomplete[key]
        complete = tuple(value for value in values if value is not None)
        if len(complete) == len(values):
            del self.incomplete[key]
            text = np.empty((), object)
            text[()] = key
            self.ready.put((index, text, *complete))

    def take_many(self, call: Call, count: int, *, fewer_if_closed: bool, wait_for_incomplete: bool) -> None:
        """Takes a batch of `count` elements as soon as they are complete; a closed barrier may give fewer.

        A closed barrier gives the elements that are complete; it waits for the incomplete ones if it is to
        `wait_for_incomplete` elements or may not give fewer. OutOfRangeError if they are too few.
        """
        if self.is_closed:
            total = len(self.ready)
            if wait_for_incomplete or not fewer_if_closed:
                total += len(self.incomplete)
            needed = min(count, total) if fewer_if_closed else count
            if total < needed or (fewer_if_closed and not needed):
                raise OutOfRangeError(
                    f"Barrier '{self.name}' is closed and has insufficient elements "
                    f"(requested {needed}, total size {total})"
                )
            count = needed
        self.ready.dequeue_many(call, count, fewer_if_closed=fewer_if_closed)

    def close(self, *, cancel_pending: bool) -> None:
        """Refuses new keys from now on, with `cancel_pending` everything; CancelledError if it does so already."""
        if self._cancelled or (self.is_closed and not cancel_pending):
            raise CancelledError(f"Barrier '{self.name}' is already closed.")
        self.is_closed = True
        self._cancelled = cancel_pending
        if cancel_pending:
            self.incomplete.clear()
        self._close_when_done()
        self.ready.lines.advance()

    def _close_when_done(self) -> None:
        """Closes the queue of ready elements once all are complete and no new keys are allowed."""
        self.ready.is_closed |= self.is_closed and not self.incomplete


@kernel("Barrier")
def barrier(node: Construction) -> Kernel:
    """The barrier of this container and name."""
    attrs = node.attrs
    types, shapes = tuple(attrs["component_types"]), tuple(shape or () for shape in attrs["shapes"])
    require(len(shapes) == len(types), "All of the component shapes must be specified")
    for shape in shapes:
        require(None not in shape, f"Shape {shape_text(shape)} is not fully defined")
    require(
        attrs["capacity"] == -1,
        "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited "
        "capacity.",
    )
    form, handle, state = QueueSpec(_UNLIMITED, types, shapes), handle_for(node, BARRIER_TYPE), node.state
    value = handle_value(node, handle)

    def put_out() -> Variable | Array:
        resource: Barrier = state.resource(handle.key, lambda: Barrier(handle.name, form))
        match_forms("barrier", resource.name, resource.form, form)
        return value

    return put_out


def _barrier_of(node: Construction) -> Callable[[Variable], Barrier]:
    return resource_of(node, Barrier, BARRIER_TYPE, "a barrier")


@deferred_kernel("BarrierInsertMany")
def insert_many(node: Construction) -> Start:
    """Gives keys a component each."""
    barrier_of, component, dtype = _barrier_of(node), int(node.attrs["component_index"]), node.input_types[2]

    def start(call: Call, handle: Variable, keys: Array, values: Array) -> None:
        resource = barrier_of(handle)
        types = resource.form.types
        require(
            0 <= component < len(types),
            f"The component ID is out of range {component} > num_components (= {len(types)})",
        )
        require(
            dtype == types[component],
            f"Signature mismatch, have: string_ref, string, {dtype_name(dtype)}-> "
            f"expected: string_ref, string, {dtype_name(types[component])}->",
        )
        names = np.asarray(keys).reshape(-1).tolist()
        require(
            values.ndim > 0 and len(values) == len(names),
            f"There must be one value per key, but the shape of {len(names)} values is {shape_text(values.shape)}",
        )
        resource.insert(names, values, component)
        call.done()

    return start


@deferred_kernel("BarrierTakeMany")
def take_many(node: Construction) -> Start:
    """Takes complete elements: their indices, keys and components."""
    attrs, barrier_of, types = node.attrs, _barrier_of(node), node.output_types
    require(attrs["timeout_ms"] == -1, "Timeout not supported yet.")
    fewer, wait = bool(attrs["allow_small_batch"]), bool(attrs["wait_for_incomplete"])

    def start(call: Call, handle: Variable, count: Array) -> None:
        resource = barrier_of(handle)
        expected = resource.ready.form.types
        if types != expected:
            have, needed = (signature(node.input_types, outputs) for outputs in (types, expected))
            raise InvalidArgumentError(f"Signature mismatch, have: {have} expected: {needed}")
        require(bool(count >= 0), f"num_elements must be >= 0, but is {count}")
        resource.take_many(call, scalar_of(count, "num_elements"), fewer_if_closed=fewer, wait_for_incomplete=wait)

    return start


@deferred_kernel("BarrierClose")
def close(node: Construction) -> Start:
    """Closes the barrier."""
    barrier_of, cancel = _barrier_of(node), bool(node.attrs["cancel_pending_enqueues"])

    def start(call: Call, handle: Variable) -> None:
        barrier_of(handle).close(cancel_pending=cancel)
        call.done()

    return start


@kernel("BarrierReadySize")
def ready_size(node: Construction) -> Kernel:
    """The number of complete elements."""
    barrier_of = _barrier_of(node)
    return lambda handle: np.int32(len(barrier_of(handle).ready))


@kernel("BarrierIncompleteSize")
def incomplete_size(node: Construction) -> Kernel:
    """The number of incomplete elements."""
    barrier_of = _barrier_of(node)
    return lambda handle: np.int32(len(barrier_of(handle).incomplete))
