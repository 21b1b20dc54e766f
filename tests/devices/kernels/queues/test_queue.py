"""A queue behaves as its model under any interleaving of enqueues, dequeues, closes and cancellations."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from partita.errors import CancelledError, OutOfRangeError
from tests.devices.kernels.calls import FakeCall, FakeStep
from tests.devices.kernels.queued import FLOAT, floats, scalars


class Model:
    """A first-in-first-out queue as lists of waiting calls, advanced until nothing moves after every call."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.items: list[float] = []
        self.closed = False
        self.putting: list[tuple[int, list[float], bool]] = []  # (call, what is left, whether it closes)
        self.taking: list[tuple[int, int, int, list[float]]] = []  # (call, how many, at least, taken)
        self.ends: dict[int, Any] = {}

    def settle(self) -> None:
        """Advances the waiting calls until nothing moves."""
        while self._put() or self._take():
            pass

    def _put(self) -> bool:
        if not self.putting:
            return False
        call, left, closes = self.putting[0]
        if self.closed:
            self.ends[call] = CancelledError
        elif closes:
            self.closed, self.ends[call] = True, []
        elif len(self.items) < self.capacity:
            self.items.append(left.pop(0))
            if left:
                return True
            self.ends[call] = []
        else:
            return False
        self.putting.pop(0)
        return True

    def _take(self) -> bool:
        if not self.taking:
            return False
        call, count, least, taken = self.taking[0]
        if self.closed and len(taken) + len(self.items) < min(count, least):
            self.items[:0] = taken
            self.ends[call] = OutOfRangeError
        elif len(taken) == count or (self.closed and not self.items):
            self.ends[call] = taken
        elif self.items:
            taken.append(self.items.pop(0))
            return True
        else:
            return False
        self.taking.pop(0)
        return True

    def cancel(self, call: int) -> None:
        """The step of a call ends."""
        self.putting = [entry for entry in self.putting if entry[0] != call]
        for _, _, _, taken in [entry for entry in self.taking if entry[0] == call]:
            self.items[:0] = taken
        self.taking = [entry for entry in self.taking if entry[0] != call]
        self.settle()


class Interleavings(RuleBasedStateMachine):
    """Enqueues, dequeues, closes and cancellations, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = scalars(capacity=3)
        self.model = Model(3)
        self.steps: list[FakeStep] = []
        self.calls: list[FakeCall] = []
        self.cancelled: set[int] = set()
        self.next = 0.0

    def _call(self, op: str, *inputs: Any, **attrs: Any) -> int:
        self.steps.append(FakeStep())
        self.calls.append(self.queue.start(op, *inputs, step=self.steps[-1], **attrs))
        return len(self.calls) - 1

    def _items(self, count: int) -> list[float]:
        self.next += count
        return [self.next - count + i for i in range(count)]

    @rule()
    def put(self) -> None:
        (item,) = self._items(1)
        self.model.putting.append((self._call("Enqueue", [np.float32(item)]), [item], False))
        self.model.settle()

    @rule(count=st.integers(1, 5))
    def put_many(self, count: int) -> None:
        items = self._items(count)
        self.model.putting.append((self._call("EnqueueMany", [floats(*items)]), items, False))
        self.model.settle()

    @rule()
    def take(self) -> None:
        self.model.taking.append((self._call("Dequeue", component_types=(FLOAT,)), 1, 1, []))
        self.model.settle()

    @rule(count=st.integers(1, 5), fewer=st.booleans())
    def take_many(self, count: int, fewer: bool) -> None:
        op = "DequeueUpTo" if fewer else "DequeueMany"
        call = self._call(op, np.int32(count), component_types=(FLOAT,))
        self.model.taking.append((call, count, 1 if fewer else count, []))
        self.model.settle()

    @precondition(lambda self: len(self.calls) > 8)
    @rule()
    def close(self) -> None:
        self.model.putting.append((self._call("Close"), [], True))
        self.model.settle()

    @precondition(lambda self: any(call.outcome is None for call in self.calls))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        waiting = [i for i, c in enumerate(self.calls) if c.outcome is None and i not in self.cancelled]
        if waiting:
            call = data.draw(st.sampled_from(waiting))
            self.cancelled.add(call)
            self.steps[call].cancel()
            self.model.cancel(call)

    @invariant()
    def both_agree(self) -> None:
        assert self.queue.size == len(self.model.items)
        assert self.queue.is_closed == self.model.closed
        for number, call in enumerate(self.calls):
            expected = None if number in self.cancelled else self.model.ends.get(number)
            if call.outcome is None or expected is None:
                assert call.outcome is expected is None
            elif isinstance(expected, list):
                assert np.ravel(np.array(call.outputs)).tolist() == expected
            else:
                assert type(call.outcome[1]) is expected


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=25)
