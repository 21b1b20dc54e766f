"""What lists, stacks, arrays and queues hold counts as long as they have it, and nothing that is put in is copied.

Tensors are vectors of 100 float32, one *unit* of 400 bytes. All ops of a step are on one CPU, in a chain of control
edges, so they run in the order in which they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.actors import BlockingSession
from partita.devices import cut, simulate
from partita.graph import DataType, GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.ops.record import Holding, families, record_of

UNIT = 400
SHAPE = np.array([100], np.int32)
ELEMENT: dict[str, Any] = {"element_dtype": DataType.FLOAT}  # Any: attr values of several types
SMALL = 120  # bytes of constants, scalars and handles in a step


class Step:
    """Writes a step op by op."""

    def __init__(self) -> None:
        self.b = GraphBuilder()
        self.x = self.b.placeholder("x", "float32", ())
        self.dims = self.b.constant(SHAPE)
        self.zero = self.b.constant(np.int32(0))
        self.last: list[Operation] = []

    def op(self, op: str, *inputs: Any, **attrs: Any) -> Operation:  # Any: tensors and constants; attr values
        """Adds an op behind all others."""
        with self.b.control_dependencies(*self.last):
            self.last = [self.b.op(op, *inputs, **attrs)]
        return self.last[0]

    def made(self) -> Tensor:
        """A unit."""
        return self.op("Fill", self.dims, self.x)[0]

    def read(self, *units: Tensor) -> None:
        """Reads tensors."""
        for unit in units:
            self.op("Sum", unit, self.zero)

    def pushed(self, items: Tensor, item: Tensor) -> Tensor:
        """A list with one element more."""
        return self.op("TensorListPushBack", items, item, **ELEMENT)[0]

    def popped(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """A list with one element less, and that element."""
        shorter, item = self.op("TensorListPopBack", items, SHAPE, **ELEMENT)
        return shorter, item

    def empty(self) -> Tensor:
        """A list without elements."""
        return self.op("EmptyTensorList", SHAPE, np.int32(-1), **ELEMENT)[0]

    def units(self) -> int:
        """The peak, in units; that of a session with a virtual clock is the same."""
        target = self.last[0].name
        graph_def = self.b.graph_def()
        timeline = simulate(cut(graph_def, "cpu:1", feeds=["x"], targets=[target]), "cpu:1")
        (peak,) = timeline.peak_bytes.values()
        assert sum(tensor.bytes for tensor in timeline.memory(timeline.devices[0]).tensors) == peak
        with BlockingSession(graph_def, "cpu:1", clock="virtual") as session:
            session.run([], {"x": np.float32(1)}, targets=[target])
            assert session.timeline().peak_bytes == timeline.peak_bytes
        assert peak % UNIT < SMALL
        return peak // UNIT


Put = Callable[[Tensor], object]
Take = Callable[[], Tensor]


def stack(s: Step) -> tuple[Put, Take]:
    """The values of a loop's forward pass."""
    handle = s.op("StackV2", np.int32(-1), elem_type=DataType.FLOAT, stack_name="s")[0]
    return (
        lambda unit: s.op("StackPushV2", handle, unit),
        lambda: s.op("StackPopV2", handle, elem_type=DataType.FLOAT)[0],
    )


def array(s: Step) -> tuple[Put, Take]:
    """An array whose elements are read once."""
    handle, flow = s.op("TensorArrayV3", np.int32(3), dtype=DataType.FLOAT)
    places = iter([0, 1, 2, 0, 1, 2])
    return (
        lambda unit: s.op("TensorArrayWriteV3", handle, np.int32(next(places)), unit, flow),
        lambda: s.op("TensorArrayReadV3", handle, np.int32(next(places)), flow, dtype=DataType.FLOAT)[0],
    )


def queue(s: Step) -> tuple[Put, Take]:
    """A queue, one element at a time."""
    handle = s.op("FIFOQueueV2", component_types=[DataType.FLOAT], shapes=[(100,)])[0]
    return (
        lambda unit: s.op("QueueEnqueueV2", handle, [unit]),
        lambda: s.op("QueueDequeueV2", handle, component_types=[DataType.FLOAT])[0],
    )


def queue_of_any_shape(s: Step) -> tuple[Put, Take]:
    """A queue that states no shapes: they are those of what is put in."""
    handle = s.op("FIFOQueueV2", component_types=[DataType.FLOAT])[0]
    return (
        lambda unit: s.op("QueueEnqueueV2", handle, [unit]),
        lambda: s.op("QueueDequeueV2", handle, component_types=[DataType.FLOAT])[0],
    )


def staging_area(s: Step) -> tuple[Put, Take]:
    """A staging area, which has a name and no handle."""
    return (
        lambda unit: s.op("Stage", [unit], shared_name=b"area"),
        lambda: s.op("Unstage", dtypes=[DataType.FLOAT], shared_name=b"area")[0],
    )


def staging_map(s: Step) -> tuple[Put, Take]:
    """A staging area whose elements have keys."""
    keys, at, area = (
        iter([1, 2, 3, 1, 2, 3]),
        np.array([0], np.int32),
        {"shared_name": b"m", "dtypes": [DataType.FLOAT]},
    )
    return (
        lambda unit: s.op("MapStage", np.int64(next(keys)), at, [unit], **area),
        lambda: s.op("MapUnstage", np.int64(next(keys)), at, **area)[0],
    )


def list_at_the_end(s: Step) -> tuple[Put, Take]:
    """A list that grows and shrinks at its end."""
    items = [s.empty()]

    def put(unit: Tensor) -> None:
        items.append(s.pushed(items[-1], unit))

    def take() -> Tensor:
        shorter, item = s.popped(items[-1])
        items.append(shorter)
        return item

    return put, take


def tensor_map(s: Step) -> tuple[Put, Take]:
    """A map: an element leaves when it is erased."""
    keys, maps = iter([1, 2, 3, 1, 2, 3]), [s.op("EmptyTensorMap")[0]]

    def put(unit: Tensor) -> None:
        maps.append(s.op("TensorMapInsert", maps[-1], np.int64(next(keys)), unit)[0])

    def take() -> Tensor:
        key = np.int64(next(keys))
        value = s.op("TensorMapLookup", maps[-1], key, value_dtype=DataType.FLOAT)[0]
        maps.append(s.op("TensorMapErase", maps[-1], key, value_dtype=DataType.FLOAT)[0])
        return s.b.op("EnsureShape", value, shape=(100,))[0]

    return put, take


HOLDERS = (stack, array, queue, queue_of_any_shape, staging_area, staging_map, list_at_the_end, tensor_map)


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_is_put_in_is_there(holder: Callable[[Step], tuple[Put, Take]]) -> None:
    """Three units in the holder, which nobody takes out, and one more afterwards."""
    s = Step()
    put, _ = holder(s)
    for _ in range(3):
        put(s.made())
    s.read(s.made())
    assert s.units() == (3 if holder in _VALUES else 4)


_VALUES = (list_at_the_end, tensor_map)  # which are gone after the last op that reads them


@pytest.mark.parametrize("holder", HOLDERS[:-1])
def test_what_is_taken_out_is_gone(holder: Callable[[Step], tuple[Put, Take]]) -> None:
    """Three units in the holder, all of which are taken out and read, and three more afterwards; nothing is copied."""
    s = Step()
    put, take = holder(s)
    for _ in range(3):
        put(s.made())
    for _ in range(3):
        s.read(take())
    s.read(*[s.made() for _ in range(3)])
    assert s.units() == 3


@pytest.mark.parametrize("holder", HOLDERS[:-1])
def test_an_element_is_written_into_once_nobody_else_has_it(holder: Callable[[Step], tuple[Put, Take]]) -> None:
    """An elementwise op takes over the buffer of what was taken out, and not of what is still in."""
    s = Step()
    put, take = holder(s)
    units = [s.made() for _ in range(3)]
    for unit in units:
        put(unit)
    s.read(s.op("Neg", units[0])[0])  # a copy, as it is still in
    s.read(s.op("Neg", take())[0])
    s.read(take(), take())
    assert s.units() == 4


def test_a_list_that_two_ops_change_is_copied_with_its_elements_shared() -> None:
    """Both of the longer lists have the first unit, until the last of them is gone."""
    s = Step()
    base = s.pushed(s.empty(), s.made())
    one, other = s.pushed(base, s.made()), s.pushed(base, s.made())
    s.read(s.popped(one)[1], s.made())
    s.read(s.popped(s.popped(other)[0])[1])
    assert s.units() == 4


def test_rows_are_copied() -> None:
    """A list of the rows of a matrix, and a queue that gets them all at once; halves of a queue are copied out."""
    s = Step()
    rows = s.op("Fill", np.array([4, 100], np.int32), s.x)[0]
    items = s.op("TensorListFromTensor", rows, SHAPE, **ELEMENT)[0]
    s.read(s.op("TensorListGetItem", items, np.int32(0), SHAPE, **ELEMENT)[0])
    assert s.units() == 8
    s = Step()
    handle = s.op("FIFOQueueV2", component_types=[DataType.FLOAT], shapes=[(100,)])[0]
    s.op("QueueEnqueueManyV2", handle, [s.op("Fill", np.array([4, 100], np.int32), s.x)[0]])
    for _ in range(2):
        s.read(s.op("QueueDequeueManyV2", handle, np.int32(2), component_types=[DataType.FLOAT])[0])
    assert s.units() == 8


def test_a_list_of_lists_has_what_they_have() -> None:
    """As in the gradient of a loop in a loop."""
    s = Step()
    outer = s.op("EmptyTensorList", np.zeros(0, np.int32), np.int32(-1), element_dtype=DataType.VARIANT)[0]
    for _ in range(2):
        inner = s.pushed(s.pushed(s.empty(), s.made()), s.made())
        outer = s.op("TensorListPushBack", outer, inner, element_dtype=DataType.VARIANT)[0]
    for _ in range(2):
        outer, inner = s.op("TensorListPopBack", outer, np.zeros(0, np.int32), element_dtype=DataType.VARIANT)
        for _ in range(2):
            inner, item = s.popped(inner)
            s.read(item)
    s.read(*[s.made() for _ in range(2)])
    assert s.units() == 4


def test_a_full_list_replaces_its_elements() -> None:
    """As the gradient of a write does, which puts zeros in its place."""
    s = Step()
    items = s.op("TensorListFromTensor", s.op("Fill", np.array([3, 100], np.int32), s.x)[0], SHAPE, **ELEMENT)[0]
    for k in range(3):
        s.read(s.op("TensorListGetItem", items, np.int32(k), SHAPE, **ELEMENT)[0])
        items = s.op("TensorListSetItem", items, np.int32(k), s.made(), **ELEMENT)[0]
    s.read(s.op("TensorListStack", items, SHAPE, num_elements=3, **ELEMENT)[0])
    assert s.units() == 6


def test_an_array_is_emptied_by_reading_all_of_it_or_by_its_end() -> None:
    """A gather takes all elements of an array whose elements are read once; closing it drops them."""
    for last in ("gather", "close"):
        s = Step()
        handle, flow = s.op("TensorArrayV3", np.int32(3), dtype=DataType.FLOAT)
        for k in range(3):
            s.op("TensorArrayWriteV3", handle, np.int32(k), s.made(), flow)
        if last == "gather":
            s.op("TensorArrayGatherV3", handle, np.arange(3, dtype=np.int32), flow, dtype=DataType.FLOAT)
        else:
            s.op("TensorArrayCloseV3", handle)
        s.read(*[s.made() for _ in range(4)])
        assert s.units() == (6 if last == "gather" else 4)


@st.composite
def list_programs(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """Ops, with two numbers that choose what they read."""
    ops = st.sampled_from(["make", "push", "push", "pop", "neg", "read"])
    return draw(st.lists(st.tuples(ops, st.integers(0, 7), st.integers(0, 7)), min_size=3, max_size=14))


@given(list_programs())
def test_lists_hold_what_a_walk_over_values_holds(program: list[tuple[str, int, int]]) -> None:
    """Lists of any ancestry, tensors in several of them and in none; elementwise ops write only into what is free."""
    s = Step()
    tensors: list[Tensor] = [s.made()]
    lists: list[tuple[Tensor, list[int]]] = [(s.empty(), [])]
    steps: list[tuple[str, list[int], list[int], list[int], list[int]]] = []
    for op, a, b in program:
        t, k = a % len(tensors), b % len(lists)
        items, content = lists[k]
        match op:
            case "make":
                tensors.append(s.made())
                steps.append((op, [], [], [len(tensors) - 1], []))
            case "push":
                lists.append((s.pushed(items, tensors[t]), [*content, t]))
                steps.append((op, [t], [k], [], [len(lists) - 1]))
            case "pop" if content:
                shorter, item = s.popped(items)
                lists.append((shorter, content[:-1]))
                tensors.append(item)
                steps.append((op, [], [k], [len(tensors) - 1], [len(lists) - 1]))
            case "neg":
                tensors.append(s.op("Neg", tensors[t])[0])
                steps.append((op, [t], [], [len(tensors) - 1], []))
            case "read":
                s.read(tensors[t])
                steps.append((op, [t], [], [], []))
    s.read(s.made())
    assert s.units() == counted(steps, [content for _, content in lists])


def _alive(
    buffer: dict[int, int],
    tensors: list[int],
    lists: list[int],
    last_t: dict[int, int],
    last_l: dict[int, int],
    contents: list[list[int]],
    since: int,
) -> set[int]:
    """The buffers of tensors and lists that are read at that step or later."""
    direct = {buffer[t] for t in tensors if last_t[t] >= since}
    return direct | {buffer[t] for k in lists if last_l[k] >= since for t in contents[k] if t in buffer}


def counted(steps: list[tuple[str, list[int], list[int], list[int], list[int]]], contents: list[list[int]]) -> int:
    """The most buffers at a time: those of tensors and lists that are made by now and read now or later."""
    last_t, last_l, buffer = {0: -1}, {0: -1}, {0: 0}
    for at, (_, reads, of_lists, made, made_lists) in enumerate(steps):
        last_t.update(dict.fromkeys([*reads, *made], at))
        last_l.update(dict.fromkeys([*of_lists, *made_lists], at))
    made_t, made_l, most = [0], [0], 1
    for at, (op, reads, of_lists, made, made_lists) in enumerate(steps):
        made_l += made_lists

        alive = partial(_alive, buffer, made_t, made_l, last_t, last_l, contents)
        for t in made:
            buffer[t] = t
            if op == "pop":
                buffer[t] = buffer[contents[of_lists[0]][-1]]
            elif op == "neg" and buffer[reads[0]] not in alive(at + 1):
                buffer[t] = buffer[reads[0]]
            made_t.append(t)
        most = max(most, len(alive(at)))
    return most


def test_every_op_of_a_holder_says_what_it_does() -> None:
    """Whoever adds an op to these families says what it does with elements, or names it here: it asks or makes."""
    ops = [op for family in ("lists", "queues") for op in families()[family]]
    silent = {op.removesuffix("V2").removesuffix("V3") for op in ops if record_of(op).holding is None}
    assert {op for op in silent if not op.endswith(_ASKING + _MAKING)} == set()
    assert set(Holding) - {record_of(op).holding for op in ops} == {Holding.SUMS, Holding.LIKE, Holding.KEEPS}


_ASKING: tuple[str, ...] = (
    "Size",
    "Length",
    "Shape",
    "HasKey",
    "HasValue",
    "IsClosed",
    "NumAccumulated",
    "Keys",
    "Close",
    "GlobalStep",
)
_ASKING += ("TensorListStack", "TensorListGather", "TensorListConcat", "Lock", "Mutex")
_MAKING = ("Queue", "Accumulator", "Barrier", "Stack", "TensorArray", "EmptyTensorList", "Reserve", "TensorMap", "None")
