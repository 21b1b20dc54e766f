"""Staging areas give tensors out in their order, within their limits; a mutex has one lock at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState
from partita.errors import ResourceExhaustedError
from tests.devices.kernels.calls import FakeCall, FakeStep, assert_refused, start
from tests.devices.kernels.harness import run
from tests.devices.kernels.queued import FLOAT, floats


class Staged:
    """A device with one staging area of single tensors."""

    def __init__(self, **limits: Any) -> None:
        self.state = DeviceState(seed=0)
        self.attrs = {"shared_name": "a", **limits}

    def put(self, *items: float) -> FakeCall:
        return start("Stage", [floats(*items)], state=self.state, **self.attrs)

    def take(self, step: FakeStep | None = None) -> FakeCall:
        return start("Unstage", state=self.state, step=step, dtypes=(FLOAT,), **self.attrs)

    def peek(self, index: int) -> FakeCall:
        return start("StagePeek", np.int32(index), state=self.state, dtypes=(FLOAT,), **self.attrs)

    @property
    def size(self) -> int:
        return int(run("StageSize", state=self.state, dtypes=(FLOAT,), **self.attrs))


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 3))
def test_tensors_are_taken_in_the_order_in_which_they_were_left(steps: list[bool], capacity: int) -> None:
    area = Staged(capacity=capacity)
    puts: list[FakeCall] = []
    takes: list[FakeCall] = []
    for number, is_put in enumerate(steps):
        (puts if is_put else takes).append(area.put(number) if is_put else area.take())
        assert area.size <= capacity
    order = [[number] for number, is_put in enumerate(steps) if is_put]
    done = min(len(puts), len(takes))
    assert [call.outputs[0].tolist() for call in takes[:done]] == order[:done]
    assert all(call.outcome is None for call in takes[done:])
    assert sum(call.outcome is None for call in puts) == max(len(puts) - len(takes) - capacity, 0)


def test_those_who_peek_wait_for_nobody_and_take_nothing() -> None:
    area = Staged()
    far, near = area.peek(1), area.peek(0)
    area.put(1)
    assert near.outputs[0].tolist() == [1]
    assert far.outcome is None
    area.put(2)
    assert far.outputs[0].tolist() == [2]
    assert area.size == 2


def test_an_area_has_room_for_so_many_bytes() -> None:
    area = Staged(memory_limit=8)
    area.put(1)
    waiting = area.put(1, 2)
    assert waiting.outcome is None
    assert_refused(
        area.put(1, 2, 3),
        ResourceExhaustedError,
        "Attempted to insert tensors with combined size of '12' bytes into Staging Area with a memory limit of '8'.",
    )
    start("StageClear", state=area.state, dtypes=(FLOAT,), **area.attrs)
    assert waiting.outputs == ()
    assert area.size == 1


def test_a_cancelled_call_takes_nothing() -> None:
    area, step = Staged(), FakeStep()
    area.take(step)
    step.cancel()
    area.put(1)
    assert area.size == 1


def test_a_mutex_has_one_lock_which_is_free_when_it_is_consumed_or_forgotten() -> None:
    state, step = DeviceState(seed=0), FakeStep()
    mutex = run("MutexV2", state=state)
    first, gone, second, third = (
        start("MutexLock", mutex, state=state, step=step if i == 1 else None) for i in range(4)
    )
    step.cancel()
    assert gone.outcome is second.outcome is None
    start("ConsumeMutexLock", first.outputs[0], state=state)
    assert second.outcome is not None
    assert third.outcome is None
    second.outcome = None  # nobody carries the lock any more
    assert third.outcome is not None
