"""Ops on queues: making them, enqueuing, dequeuing, closing them.

There is one queue per device and name, shared by all steps of a session; nodes that share a queue must declare the same
form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, Shape, dtype_name
from ...state import handle_of
from ..checks import require, single_of
from ..handles import Handle, handle_for, handle_value, reference_to, resource_of
from ..random import philox
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from .queue import PaddingQueue, PriorityQueue, Queue, QueueSpec, ShuffleQueue

QUEUE_TYPE = "N10tensorflow14QueueInterfaceE"  # TensorFlow's name for the class of queues in messages
_UNLIMITED = 2**31 - 1

MakeQueue = Callable[[str], Queue]


def _names(types: Iterable[DataType]) -> str:
    return ", ".join(map(dtype_name, types))


def _shapes_text(shapes: Iterable[Shape]) -> str:
    return f"[{', '.join(map(shape_text, shapes))}]"


def _known(shape: Shape) -> Shape:
    """A declared shape, of which an unknown rank means a scalar, as in TensorFlow."""
    require(None not in (shape or ()), f"Shape {shape_text(shape)} is not fully defined")
    return shape or ()


def _form(node: Construction, first: tuple[DataType, ...] = ()) -> QueueSpec:
    """The declared form of the elements, whose leading components are scalars of the types `first`."""
    types = (*first, *node.attrs["component_types"])
    shapes: tuple[Shape, ...] = tuple(node.attrs["shapes"])
    if shapes:
        shapes = (*((),) * len(first), *shapes)
        require(
            len(shapes) == len(types),
            f"Different number of component types.  Types: {_names(types)}, Shapes: {_shapes_text(shapes)}",
        )
    capacity = int(node.attrs["capacity"])
    return QueueSpec(_UNLIMITED if capacity < 0 else capacity, types, shapes)


def _with_known_shapes(form: QueueSpec) -> QueueSpec:
    return QueueSpec(form.capacity, form.types, tuple(map(_known, form.shapes)))


def _making(
    node: Construction, kind: type[Queue], form: QueueSpec, make: MakeQueue, check: Callable[[Any], None]
) -> Kernel:
    """The kernel that gives the handle of this node's queue; `make` makes the queue on first use.

    `check` compares the attrs that only queues of this kind have.
    """
    handle = handle_for(node, QUEUE_TYPE)
    value, state, name = handle_value(node, handle), node.state, handle.name
    checked: ref[Queue] | None = None  # the queue that fits; another may take its place under the name

    def put_out() -> Handle:
        nonlocal checked
        queue = state.resource(handle.key, lambda: make(name))
        if checked is not None and queue is checked():
            return value
        require(type(queue) is kind, f"Expected {kind.kind_of_batches}, found {type(queue).kind_of_batches}")
        _match("queue", name, "capacity", str(queue.form.capacity), str(form.capacity))
        check(queue)
        match_forms("queue", name, queue.form, form)
        checked = ref(queue)
        return value

    return put_out


def match_forms(thing: str, name: str, has: QueueSpec, requested: QueueSpec) -> None:
    """InvalidArgumentError unless a shared resource (`thing` in the message) has the requested types and shapes."""
    _match(thing, name, "component types", _names(has.types), _names(requested.types))
    _match(thing, name, "component shapes", _shapes_text(has.shapes), _shapes_text(requested.shapes))


def _match(thing: str, name: str, what: str, has: str, requested: str, end: str = "") -> None:
    verb = "were" if what.endswith("s") else "was"
    require(has == requested, f"Shared {thing} '{name}' has {what} {has} but requested {what} {verb} {requested}{end}")


def _nothing(queue: Queue) -> None:
    """The `check` of queues without attrs of their own."""


@kernel("FIFOQueue", "FIFOQueueV2")
def fifo_queue(node: Construction) -> Kernel:
    """A queue that gives elements out in the order in which they came."""
    form = _with_known_shapes(_form(node))
    return _making(node, Queue, form, lambda name: Queue(name, form), _nothing)


@kernel("RandomShuffleQueue", "RandomShuffleQueueV2")
def random_shuffle_queue(node: Construction) -> Kernel:
    """A queue that gives elements out at random; with seeds, in TensorFlow's order."""
    form, attrs = _with_known_shapes(_form(node)), node.attrs
    least, seeds = int(attrs["min_after_dequeue"]), (int(attrs["seed"]), int(attrs["seed2"]))
    require(least >= 0, f"min_after_dequeue {least} must be >= 0")
    require(least < form.capacity, f"min_after_dequeue {least} must be < capacity {form.capacity}")
    start = philox.seeded(*(seeds if any(seeds) else node.state.random_words(node.name)))

    def check(queue: ShuffleQueue) -> None:
        _match("queue", queue.name, "min_after_dequeue", str(queue.least), str(least), ".")
        require(
            queue.seeds == seeds,
            f"Shared queue '{queue.name}' has random seeds {queue.seeds} but requested seeds are {seeds}.",
        )

    return _making(node, ShuffleQueue, form, lambda name: ShuffleQueue(name, form, least, seeds, start), check)


@kernel("PaddingFIFOQueue", "PaddingFIFOQueueV2")
def padding_fifo_queue(node: Construction) -> Kernel:
    """A queue whose batches are padded to the largest element."""
    form = _form(node)
    require(
        len(form.shapes) == len(form.types),
        f"Shapes must be provided for all components, but received {len(form.types)} dtypes and "
        f"{len(form.shapes)} shapes.",
    )
    for shape in form.shapes:
        require(shape is not None, f"shape {shape_text(shape)} must have known rank.")
    return _making(node, PaddingQueue, form, lambda name: PaddingQueue(name, form), _nothing)


@kernel("PriorityQueue", "PriorityQueueV2")
def priority_queue(node: Construction) -> Kernel:
    """A queue that gives out elements by their first component, the smallest first."""
    form = _with_known_shapes(_form(node, (DataType.INT64,)))
    return _making(node, PriorityQueue, form, lambda name: PriorityQueue(name, form), _nothing)


@kernel("FakeQueue")
def fake_queue(node: Construction) -> Kernel:
    """The handle of a queue in the form that the first version of the ops takes."""
    return lambda handle: reference_to(handle_of(handle))


def _queue_of(node: Construction) -> Callable[[Handle], Queue]:
    return resource_of(node, Queue, QUEUE_TYPE, "a queue")


def _checked_queue_of(node: Construction) -> Callable[[Handle], Queue]:
    """As `_queue_of`; InvalidArgumentError unless the components of the node are of the queue's types."""
    require(node.attrs["timeout_ms"] == -1, "Timeout not supported yet.")
    find, (handle, *inputs), outputs = _queue_of(node), node.input_types, node.output_types

    def checked(value: Handle) -> Queue:
        queue = find(value)
        types = queue.form.types
        if outputs != types if outputs else tuple(inputs) != types:
            own_types = (node.input_types, types) if outputs else ((handle, *types), ())
            have, expected = signature(node.input_types, outputs), signature(*own_types)
            raise InvalidArgumentError(f"Signature mismatch, have: {have} expected: {expected}")
        return queue

    return checked


def signature(inputs: Iterable[DataType], outputs: Iterable[DataType]) -> str:
    """The types as messages show them: "resource, int32->float"."""
    return f"{_names(inputs)}->{_names(outputs)}"


@deferred_kernel("QueueEnqueue", "QueueEnqueueV2")
def enqueue(node: Construction) -> Start:
    """Adds an element."""
    queue_of = _checked_queue_of(node)

    def start(call: Call, handle: Handle, *components: Array) -> None:
        queue_of(handle).enqueue(call, tuple(map(np.asarray, components)))

    return start


@deferred_kernel("QueueEnqueueMany", "QueueEnqueueManyV2")
def enqueue_many(node: Construction) -> Start:
    """Adds an element for each row."""
    queue_of = _checked_queue_of(node)

    def start(call: Call, handle: Handle, *components: Array) -> None:
        queue_of(handle).enqueue_many(call, tuple(map(np.asarray, components)))

    return start


@deferred_kernel("QueueDequeue", "QueueDequeueV2")
def dequeue(node: Construction) -> Start:
    """Takes an element."""
    queue_of = _checked_queue_of(node)
    return lambda call, handle: queue_of(handle).dequeue(call)


@deferred_kernel("QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2")
def dequeue_many(node: Construction) -> Start:
    """Takes the requested number of elements; "up to" ops take the remaining ones once the queue is closed."""
    queue_of, name = _checked_queue_of(node), node.op.removeprefix("Queue").removesuffix("V2")
    fewer = name == "DequeueUpTo"

    def start(call: Call, handle: Handle, n: Array) -> None:
        queue = queue_of(handle)
        count = single_of(n, "n")
        require(count >= 0, f"{name}Op requested {count} < 0 elements")
        queue.dequeue_many(call, count, fewer_if_closed=fewer)

    return start


@deferred_kernel("QueueClose", "QueueCloseV2")
def close(node: Construction) -> Start:
    """Closes the queue."""
    queue_of, cancel = _queue_of(node), bool(node.attrs["cancel_pending_enqueues"])
    return lambda call, handle: queue_of(handle).close(call, cancel_pending=cancel)


@kernel("QueueSize", "QueueSizeV2")
def size(node: Construction) -> Kernel:
    """The number of elements."""
    queue_of = _queue_of(node)
    return lambda handle: np.int32(len(queue_of(handle)))


@kernel("QueueIsClosed", "QueueIsClosedV2")
def is_closed(node: Construction) -> Kernel:
    """Whether the queue has been closed."""
    queue_of = _queue_of(node)
    return lambda handle: np.bool_(queue_of(handle).is_closed)
