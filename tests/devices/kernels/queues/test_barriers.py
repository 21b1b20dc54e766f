"""Elements leave a barrier when they are complete, in the order of their keys, in TensorFlow's words otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState
from partita.errors import CancelledError, InvalidArgumentError, NotFoundError, OutOfRangeError
from partita.graph.dtypes import Array
from tests.devices.kernels.calls import FakeCall, FakeStep, assert_refused, start
from tests.devices.kernels.harness import run
from tests.devices.kernels.queued import FLOAT, INT32

FIRST = -(2**63)
TYPES = (FLOAT, INT32)


def texts(names: str) -> Array:
    """A vector with one string per letter."""
    result = np.empty(len(names), object)
    result[:] = [name.encode() for name in names]
    return result


class Barred:
    """A device with one barrier for elements of a number and a pair."""

    def __init__(self) -> None:
        self.state = DeviceState(seed=0)
        self.handle = self.make()

    def make(self, component_types: Any = TYPES, shapes: Any = ((), (2,)), **attrs: Any) -> Any:
        return run("Barrier", state=self.state, name="b", component_types=component_types, shapes=shapes, **attrs)

    def insert(self, component: int, keys: str, values: Any) -> FakeCall:
        array = np.array(values, np.int32 if component else np.float32)
        return start("BarrierInsertMany", self.handle, texts(keys), array, state=self.state, component_index=component)

    def take(self, n: int, step: FakeStep | None = None, types: Any = TYPES, **attrs: Any) -> FakeCall:
        return start(
            "BarrierTakeMany", self.handle, np.int32(n), state=self.state, step=step, component_types=types, **attrs
        )

    def close(self, *, cancel: bool = False) -> FakeCall:
        return start("BarrierClose", self.handle, state=self.state, cancel_pending_enqueues=cancel)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many elements are ready, how many are not."""
        ready, incomplete = (
            run(f"Barrier{which}Size", self.handle, state=self.state) for which in ("Ready", "Incomplete")
        )
        return int(ready), int(incomplete)


def test_elements_leave_in_the_order_of_their_keys_once_they_are_complete() -> None:
    barrier = Barred()
    assert barrier.insert(0, "abc", [1, 2, 3]).outputs == ()
    barrier.insert(0, "z", [4])
    barrier.insert(1, "z", [[7, 8]])
    barrier.insert(1, "caw", [[1, 2], [3, 4], [5, 6]])
    assert barrier.sizes == (3, 2)
    indices, keys, numbers, pairs = barrier.take(3).outputs
    assert indices.tolist() == [FIRST, FIRST, FIRST + 1]
    assert dict(zip(keys.tolist(), numbers.tolist(), strict=True)) == {b"a": 1, b"c": 3, b"z": 4}
    assert sorted(pairs.tolist()) == [[1, 2], [3, 4], [7, 8]]
    assert [value.shape for value in barrier.take(0).outputs] == [(0,), (0,), (0,), (0, 2)]


@given(st.permutations("abcde"), st.permutations("abcde"))
def test_components_may_come_in_any_order(first: list[str], second: list[str]) -> None:
    barrier = Barred()
    batch = barrier.take(5)
    for a, b in zip(first, second, strict=True):
        barrier.insert(0, a, [ord(a)])
        barrier.insert(1, b, [[ord(b)] * 2])
    _, keys, numbers, pairs = batch.outputs
    assert sorted(keys.tolist()) == [b"a", b"b", b"c", b"d", b"e"]
    assert [key[0] for key in keys.tolist()] == numbers.tolist() == pairs[:, 0].tolist()


def test_what_a_cancelled_call_had_taken_is_there_for_the_next() -> None:
    barrier, step = Barred(), FakeStep()
    barrier.take(2, step)
    barrier.insert(0, "a", [1])
    barrier.insert(1, "a", [[1, 2]])
    assert barrier.sizes == (0, 0)
    step.cancel()
    assert barrier.sizes == (1, 0)
    assert barrier.take(1).outputs[1].tolist() == [b"a"]


CLOSED = "is closed and has insufficient elements"


def test_a_closed_barrier_takes_components_of_the_keys_it_has() -> None:
    barrier = Barred()
    barrier.insert(0, "ab", [1, 2])
    barrier.insert(1, "b", [[1, 2]])
    waiting = barrier.take(2)
    barrier.close()
    assert_refused(
        barrier.insert(0, "n", [1]),
        CancelledError,
        "Barrier _0_b is closed, but attempted to insert a brand new key: n.  Pending enqueues cancelled: 0.  "
        "Insertion index: 0.  Number of incomplete keys: 1.",
    )
    assert waiting.outcome is None
    assert barrier.insert(1, "a", [[3, 4]]).outputs == ()
    assert sorted(waiting.outputs[1].tolist()) == [b"a", b"b"]
    assert_refused(barrier.close(), CancelledError, "Barrier '_0_b' is already closed.")
    for fewer, wanted in ((True, 0), (False, 2)):
        assert_refused(
            barrier.take(2, allow_small_batch=fewer),
            OutOfRangeError,
            f"Barrier '_0_b' {CLOSED} (requested {wanted}, total size 0)",
        )


def test_a_barrier_closed_with_what_is_pending_forgets_incomplete_elements() -> None:
    barrier = Barred()
    barrier.insert(0, "ab", [1, 2])
    barrier.insert(1, "b", [[1, 2]])
    small, waiting = barrier.take(2, allow_small_batch=True), barrier.take(2)
    assert barrier.close(cancel=True).outputs == ()
    assert small.outputs[1].tolist() == [b"b"]
    assert_refused(waiting, OutOfRangeError, f"PriorityQueue '_0_b_queue' {CLOSED} (requested 2, current size 0)")
    assert barrier.sizes == (0, 0)
    assert_refused(
        barrier.insert(1, "a", [[1, 2]]),
        CancelledError,
        "Barrier _0_b is closed.  Pending enqueues cancelled: 1.  Number of new insertions: 1.  "
        "Number of incomplete keys: 0.",
    )


def test_small_batches_of_a_closed_barrier_wait_for_incomplete_elements_if_told_to() -> None:
    barrier = Barred()
    barrier.insert(0, "ab", [1, 2])
    barrier.insert(1, "b", [[1, 2]])
    barrier.close()
    assert barrier.take(2, allow_small_batch=True).outputs[1].tolist() == [b"b"]
    waiting = barrier.take(2, allow_small_batch=True, wait_for_incomplete=True)
    assert waiting.outcome is None
    barrier.insert(1, "a", [[1, 2]])
    assert waiting.outputs[1].tolist() == [b"a"]


def test_a_refused_insertion_inserts_nothing() -> None:
    barrier = Barred()
    barrier.insert(0, "a", [1])
    again = "Key a already has a value for component 0 in barrier _0_b"
    assert_refused(barrier.insert(0, "za", [1, 2]), InvalidArgumentError, again)
    message = "Shape mismatch in tuple component 3. Expected [2], got [3]"
    assert_refused(barrier.insert(1, "a", [[1, 2, 3]]), InvalidArgumentError, message)
    assert_refused(
        barrier.insert(2, "a", [[1, 2]]),
        InvalidArgumentError,
        "The component ID is out of range 2 > num_components (= 2)",
    )
    assert barrier.sizes == (0, 1)


def test_attrs_and_types_are_checked() -> None:
    barrier = Barred()
    assert_refused(
        barrier.take(1, types=(INT32, INT32)),
        InvalidArgumentError,
        "Signature mismatch, have: string_ref, int32->int64, string, int32, int32 "
        "expected: string_ref, int32->int64, string, float, int32",
    )
    with pytest.raises(InvalidArgumentError, match="All of the component shapes must be specified"):
        barrier.make(shapes=((),))
    with pytest.raises(InvalidArgumentError, match="Barrier only accepts capacity=-1"):
        barrier.make(capacity=3)
    barrier.make(shared_name="x")
    message = "Shared barrier 'x' has component types float, int32 but requested component types were int32, int32"
    with pytest.raises(InvalidArgumentError, match=message):
        barrier.make(shared_name="x", component_types=(INT32, INT32))
    with pytest.raises(NotFoundError):
        run("QueueSize", barrier.handle, state=barrier.state)


def test_a_closed_barrier_without_incomplete_keys_takes_nothing_more() -> None:
    """The message counts the new keys."""
    barrier = Barred()
    barrier.close()
    assert_refused(
        barrier.insert(0, "nm", [1, 2]),
        CancelledError,
        "Barrier _0_b is closed.  Pending enqueues cancelled: 0.  Number of new insertions: 2.  "
        "Number of incomplete keys: 0.",
    )
