"""Queues give elements out in the order of their kind, and serve waiting calls in the order in which they came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState
from partita.errors import CancelledError, InvalidArgumentError, NotFoundError, OutOfRangeError
from partita.graph.dtypes import DataType
from tests.devices.kernels.calls import FakeStep, assert_refused
from tests.devices.kernels.harness import run
from tests.devices.kernels.queued import FLOAT, INT32, STRING, Queued, floats, scalars

# Order


@pytest.mark.parametrize("version", ["", "V2"])
def test_elements_come_out_in_the_order_they_were_put_in(version: str) -> None:
    q = scalars(version=version)
    q.put(np.float32(1))
    q.put_many(floats(2, 3, 4))
    assert q.size == 4
    assert q.take().outputs == (1,)
    assert q.take_many(2).outputs[0].tolist() == [2, 3]
    assert q.take_up_to(1).outputs[0].tolist() == [4]


def test_elements_have_several_components() -> None:
    q = Queued(types=(STRING, INT32), shapes=((), (2,)))
    q.put(np.array(b"a", object), np.array([1, 2], np.int32))
    q.put_many(np.array([b"b", b"c"], object), np.array([[3, 4], [5, 6]], np.int32))
    assert [value.tolist() for value in q.take().outputs] == [b"a", [1, 2]]
    assert [value.tolist() for value in q.take_many(2).outputs] == [[b"b", b"c"], [[3, 4], [5, 6]]]


@pytest.mark.parametrize(
    ("seeds", "order"),
    [
        ((1, 0), [4, 2, 10, 11, 3, 6, 5, 1, 0, 7, 9, 8]),
        ((0, 2), [7, 3, 6, 11, 8, 2, 1, 0, 4, 5, 10, 9]),
        ((87654321, 5), [7, 2, 4, 8, 0, 6, 1, 10, 11, 3, 5, 9]),
    ],
)
def test_shuffled_elements_come_out_in_tensorflows_order(seeds: tuple[int, int], order: list[int]) -> None:
    q = Queued("RandomShuffleQueue", shapes=((),), seed=seeds[0], seed2=seeds[1])
    q.put_many(floats(*range(12)))
    assert [*q.take_many(7).outputs[0].tolist(), *(float(q.take().outputs[0]) for _ in range(5))] == order


@given(st.lists(st.integers(0, 9), max_size=400))
def test_shuffling_loses_nothing(items: list[int]) -> None:
    q = Queued("RandomShuffleQueue", shapes=((),))
    q.put_many(floats(*items))
    assert sorted(q.take_many(len(items)).outputs[0].tolist()) == sorted(items)


def test_as_many_as_asked_for_remain_to_choose_from_until_the_queue_is_closed() -> None:
    q = Queued("RandomShuffleQueue", shapes=((),), min_after_dequeue=3)
    q.put_many(floats(*range(5)))
    many = q.take_many(4)
    assert q.size == 3
    assert many.outcome is None
    q.close()
    assert len(many.outputs[0]) == 4
    assert q.size == 1


def test_small_priorities_come_first_and_equal_ones_in_tensorflows_order() -> None:
    q = Queued("PriorityQueue", shapes=((),))
    q.put_many(np.array([3, 1, 2, 1, 1, 3, 0, 1]), floats(*range(8)))
    priorities, values = q.take_many(8).outputs
    assert priorities.tolist() == [0, 1, 1, 1, 1, 2, 3, 3]
    assert values.tolist() == [6, 1, 3, 4, 7, 2, 5, 0]


def test_a_batch_is_padded_to_the_largest_element() -> None:
    q = Queued("PaddingFIFOQueue", (FLOAT, STRING), shapes=((None, 2), (None,)))
    q.put(np.ones((1, 2), np.float32), np.array([b"x", b"y"], object))
    q.put(np.ones((2, 2), np.float32), np.array([], object))
    numbers, texts = q.take_many(2).outputs
    assert numbers.tolist() == [[[1, 1], [0, 0]], [[1, 1], [1, 1]]]
    assert texts.tolist() == [[b"x", b"y"], [b"", b""]]
    assert [value.shape for value in q.take_many(0).outputs] == [(0, 0, 2), (0, 0)]


# Waiting


def test_who_wants_many_takes_elements_as_they_come_and_holds_up_those_behind() -> None:
    q = scalars(capacity=2)
    many, one = q.take_many(3), q.take()
    q.put_many(floats(1, 2))
    assert q.size == 0
    assert many.outcome is one.outcome is None
    q.put_many(floats(3, 4))
    assert many.outputs[0].tolist() == [1, 2, 3]
    assert one.outputs == (4,)


def test_enqueues_wait_for_room_in_their_order() -> None:
    q = scalars(capacity=2)
    many, one = q.put_many(floats(1, 2, 3)), q.put(np.float32(4))
    assert (q.size, many.outcome, one.outcome) == (2, None, None)
    assert q.take().outputs == (1,)
    assert many.outputs == ()
    assert one.outcome is None
    assert q.take_many(3).outputs[0].tolist() == [2, 3, 4]
    assert one.outputs == ()


def test_what_a_cancelled_call_had_taken_is_there_for_the_next() -> None:
    q = scalars()
    step = FakeStep()
    q.take_many(3, step)
    q.take_many(2, step)
    one = q.take()
    q.put_many(floats(1, 2))
    step.cancel()
    assert one.outputs == (1,)
    assert q.take().outputs == (2,)


def test_nobody_waits_for_a_cancelled_enqueue() -> None:
    q = scalars(capacity=1)
    step = FakeStep()
    q.put_many(floats(1, 2), step=step)
    other = q.put(np.float32(3))
    step.cancel()
    assert q.take_many(2).outputs[0].tolist() == [1, 3]
    assert other.outputs == ()


# Closing


def test_a_queue_is_closed_when_those_who_came_before_are_done() -> None:
    q = scalars(capacity=1)
    q.put(np.float32(1))
    waiting, closing = q.put(np.float32(2)), q.close()
    assert not q.is_closed
    assert closing.outcome is None
    assert q.take().outputs == (1,)
    assert waiting.outputs == closing.outputs == ()
    assert q.is_closed
    assert q.take().outputs == (2,)


def test_pending_enqueues_are_cancelled_if_that_is_asked_for() -> None:
    q = scalars(capacity=2)
    waiting, closing = q.put_many(floats(1, 2, 3)), q.close()
    assert q.close(cancel=True).outputs == ()
    assert closing.outputs == ()
    with pytest.raises(CancelledError, match="Enqueue operation was cancelled"):
        waiting.outputs  # noqa: B018 - the property raises
    assert q.take_many(2).outputs[0].tolist() == [1, 2]


CLOSED = "is closed and has insufficient elements"


def test_messages_of_a_closed_queue_are_tensorflows() -> None:
    q = scalars()
    many, one = q.take_many(5), q.take()
    q.put_many(floats(1, 2))
    assert q.close().outputs == ()
    assert_refused(many, OutOfRangeError, f"FIFOQueue '_0_q' {CLOSED} (requested 3, current size 0)")
    assert one.outputs == (1,)
    assert q.take_up_to(5).outputs[0].tolist() == [2]
    assert_refused(q.take_up_to(5), OutOfRangeError, f"FIFOQueue '_0_q' {CLOSED} (requested 5, current size 0)")
    assert_refused(q.take(), OutOfRangeError, f"FIFOQueue '_0_q' {CLOSED} (requested 1, current size 0)")
    assert_refused(q.put(np.float32(1)), CancelledError, "FIFOQueue '_0_q' is closed.")
    assert_refused(q.close(), CancelledError, "Queue '_0_q' is already closed.")
    assert q.close(cancel=True).outputs == ()
    assert q.put_many(floats()).outputs == ()
    assert q.take_many(0).outputs[0].shape == (0,)


# What is refused


def test_shapes_are_those_declared() -> None:
    q = Queued(types=(FLOAT, INT32), shapes=((), (2,)))
    two = np.array([1, 2], np.int32)
    assert_refused(
        q.put(floats(1), two), InvalidArgumentError, "Shape mismatch in tuple component 0. Expected [], got [1]"
    )
    assert_refused(
        q.put_many(floats(1, 2), two[None]),
        InvalidArgumentError,
        "Shape mismatch in tuple component 1. Expected [2,2], got [1,2]",
    )
    padding = Queued("PaddingFIFOQueue", shapes=((None, 2),))
    assert_refused(
        padding.put(floats(1, 2)), InvalidArgumentError, "Shape mismatch in tuple component 0. Expected [?,2], got [2]"
    )
    priority = Queued("PriorityQueue", shapes=((),))
    assert_refused(
        priority.put(np.array([3]), np.float32(1)),
        InvalidArgumentError,
        "Shape mismatch in tuple component 0. Expected [], got [1]",
    )


def test_without_shapes_any_will_do_but_not_in_batches() -> None:
    q = Queued(types=(FLOAT, INT32))
    assert_refused(
        q.put_many(floats(1, 2), np.array([1], np.int32)),
        InvalidArgumentError,
        "All input tensors must have the same size in the 0th dimension. Component 1 has 1, and should have 2",
    )
    q.put(floats(1, 2), np.int32(3))
    message = "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes."
    assert_refused(q.take_many(1), InvalidArgumentError, message)
    assert q.take().outputs[0].tolist() == [1, 2]


def test_types_and_numbers_are_checked() -> None:
    q = Queued(types=(FLOAT, INT32), shapes=((), ()))
    assert_refused(
        q.start("DequeueMany", np.int32(1), component_types=(INT32,)),
        InvalidArgumentError,
        "Signature mismatch, have: resource, int32->int32 expected: resource, int32->float, int32",
    )
    assert_refused(
        q.put(floats(1)),
        InvalidArgumentError,
        "Signature mismatch, have: resource, float-> expected: resource, float, int32->",
    )
    assert_refused(q.take_many(-1), InvalidArgumentError, "DequeueManyOp requested -1 < 0 elements")
    assert_refused(q.take_up_to(-1), InvalidArgumentError, "DequeueUpToOp requested -1 < 0 elements")
    assert_refused(
        q.start("Dequeue", component_types=(FLOAT, INT32), timeout_ms=5),
        InvalidArgumentError,
        "Timeout not supported yet.",
    )


SHARED = "Shared queue 'x' has "
SHUFFLE = {"kind": "RandomShuffleQueue"}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"capacity": 2}, {"capacity": 3}, SHARED + "capacity 2 but requested capacity was 3"),
        ({}, {"capacity": 3}, SHARED + "capacity 2147483647 but requested capacity was 3"),
        ({}, {"types": (INT32,)}, SHARED + "component types float but requested component types were int32"),
        (
            {"shapes": ((2,),)},
            {"shapes": ((3,),)},
            SHARED + "component shapes [[2]] but requested component shapes were [[3]]",
        ),
        ({}, SHUFFLE, "Expected RandomShuffleQueue, found FIFOQueue"),
        (
            SHUFFLE,
            {**SHUFFLE, "min_after_dequeue": 3},
            SHARED + "min_after_dequeue 0 but requested min_after_dequeue was 3.",
        ),
        (
            {**SHUFFLE, "seed": 1},
            {**SHUFFLE, "seed": 3},
            SHARED + "random seeds (1, 0) but requested seeds are (3, 0).",
        ),
    ],
)
def test_queues_of_one_name_are_of_one_form(first: dict[str, Any], second: dict[str, Any], message: str) -> None:
    state = DeviceState(seed=0)

    def make(kind: str = "FIFOQueue", types: tuple[DataType, ...] = (FLOAT,), **attrs: Any) -> Any:
        return run(kind + "V2", state=state, component_types=types, shared_name="x", **attrs)

    assert make(**first).item() == make(**first).item()
    with pytest.raises(InvalidArgumentError) as caught:
        make(**second)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("kind", "attrs", "message"),
    [
        ("FIFOQueue", {"shapes": ((), ())}, "Different number of component types.  Types: float, Shapes: [[], []]"),
        ("FIFOQueue", {"shapes": ((None,),)}, "Shape [?] is not fully defined"),
        ("RandomShuffleQueue", {"capacity": 3, "min_after_dequeue": 3}, "min_after_dequeue 3 must be < capacity 3"),
        ("RandomShuffleQueue", {"min_after_dequeue": -1}, "min_after_dequeue -1 must be >= 0"),
        (
            "PaddingFIFOQueue",
            {},
            "Shapes must be provided for all components, but received 1 dtypes and 0 shapes.",
        ),
        ("PaddingFIFOQueue", {"shapes": (None,)}, "shape <unknown> must have known rank."),
    ],
)
def test_attrs_are_checked(kind: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Queued(kind, **attrs)
    assert caught.value.message == message


def test_handles_of_no_queue_are_refused() -> None:
    state = DeviceState(seed=0)
    variable = run("VarHandleOp", state=state, dtype=FLOAT, shape=(), shared_name="v")
    with pytest.raises(InvalidArgumentError, match="using the wrong type"):
        run("QueueSizeV2", variable, state=state)
    strings = run("VariableV2", state=state, dtype=STRING, shape=(2,))
    strings.value = np.array([b"localhost", b"nope"], object)
    with pytest.raises(NotFoundError, match="nope"):
        run("QueueSize", strings, state=state)


def test_the_first_version_of_the_ops_finds_the_queue_of_a_resource_handle() -> None:
    q = scalars()
    q.put(np.float32(1))
    assert run("QueueSize", run("FakeQueue", q.handle, state=q.state), state=q.state) == 1
    assert run("FIFOQueue", state=q.state, name="a", component_types=(FLOAT,)).value.tolist() == [b"localhost", b"_1_a"]
