"""Staging areas by key hold entries that come and go in parts, within their limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState
from partita.errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from partita.graph.dtypes import DataType
from tests.devices.kernels.calls import FakeCall, FakeStep, start
from tests.devices.kernels.harness import run
from tests.devices.kernels.queued import FLOAT, INT32

TYPES = (FLOAT, INT32)
KINDS = pytest.mark.parametrize("kind", ["Map", "OrderedMap"])


class Staged:
    """A device with one area of entries of a float and an integer."""

    def __init__(self, kind: str, **limits: int) -> None:
        self.state, self.kind = DeviceState(seed=0), kind
        self.attrs: dict[str, Any] = {"shared_name": "a", **limits}

    def put(self, key: int, *places: int, step: FakeStep | None = None) -> FakeCall:
        """Puts fields of the values key and key."""
        values = [(np.float32, np.int32, np.int32)[place](key) for place in places]
        inputs = np.int64(key), np.array(places, np.int32), values
        return start(f"{self.kind}Stage", *inputs, state=self.state, step=step, dtypes=TYPES, **self.attrs)

    def get(self, op: str, *inputs: Any, dtypes: tuple[DataType, ...], step: FakeStep | None = None) -> FakeCall:
        return start(f"{self.kind}{op}", *inputs, state=self.state, step=step, dtypes=dtypes, **self.attrs)

    def take(self, key: int, *places: int, op: str = "Unstage", step: FakeStep | None = None) -> FakeCall:
        dtypes = tuple(TYPES[place % 2] for place in places)
        return self.get(op, np.int64(key), np.array(places, np.int32), dtypes=dtypes, step=step)

    def take_any(self) -> FakeCall:
        return self.get("UnstageNoKey", np.array([0, 1], np.int32), dtypes=TYPES)

    def size(self, what: str = "Size") -> int:
        return int(run(f"{self.kind}{what}", state=self.state, dtypes=TYPES, **self.attrs))


def values(call: FakeCall) -> list[float]:
    return [float(value) for value in call.outputs]


@KINDS
@given(st.lists(st.integers(0, 9), unique=True, min_size=1))
def test_entries_come_out_by_key_or_in_order(kind: str, keys: list[int]) -> None:
    """The smallest key is first in an ordered area, the oldest in another."""
    area = Staged(kind)
    for key in keys:
        area.put(key, 0, 1)
    assert area.size() == len(keys)
    assert values(area.take(keys[0], 0, 1)) == [keys[0]] * 2
    rest = sorted(keys[1:]) if kind == "OrderedMap" else keys[1:]
    assert [values(area.take_any())[0] for _ in rest] == rest


@KINDS
def test_an_entry_comes_and_goes_in_parts(kind: str) -> None:
    """It can be taken once it is complete; who asked before waits, and reading takes nothing."""
    area = Staged(kind)
    waiting, read = area.take(4, 0), area.take(4, 1, op="Peek")
    area.put(4, 1)
    assert (area.size(), area.size("IncompleteSize"), waiting.outcome) == (0, 1, None)
    area.put(4, 0)
    assert (area.size(), area.size("IncompleteSize")) == (1, 0)
    assert (values(waiting), values(read)) == ([4], [4])
    with pytest.raises(InvalidArgumentError, match="Tensor at index '0' for key '4' has already been removed"):
        failed(area.take(4, 0))
    assert values(area.take(4, 1)) == [4]
    assert area.size() == 0


def failed(call: FakeCall) -> None:
    """Raises the error of a call that has failed."""
    assert call.outcome is not None
    assert call.outcome[0] == "failed"
    raise call.outcome[1]


@KINDS
def test_limits_make_puts_wait(kind: str) -> None:
    """For room for an entry, or for its bytes; a put that could never succeed is refused."""
    area = Staged(kind, capacity=1)
    area.put(1, 0, 1)
    second = area.put(2, 0, 1)
    third = area.put(3, 0, 1)
    assert second.outcome is None
    area.take(1, 0)
    assert second.outcome is None
    area.take(1, 1)
    assert second.outcome is not None
    assert third.outcome is None
    area.get("Clear", dtypes=TYPES)
    assert third.outcome is not None
    small = Staged(kind, memory_limit=8)
    small.put(1, 0, 1)
    waiting = small.put(2, 1)
    assert waiting.outcome is None
    small.take(1, 0)
    assert waiting.outcome is not None
    with pytest.raises(ResourceExhaustedError, match=r"combined size of '8' bytes .* memory limit of '4'"):
        failed(Staged(kind, memory_limit=4).put(1, 0, 1))


@KINDS
def test_a_step_that_ends_leaves_nothing_behind(kind: str) -> None:
    """Neither a put nor a take that waits."""
    area, step = Staged(kind, capacity=1), FakeStep()
    area.put(1, 0, 1)
    area.put(2, 0, 1, step=step)
    area.take(7, 0, step=step)
    step.cancel()
    assert values(area.take_any()) == [1, 1, 1]
    assert area.size() == 0


@KINDS
def test_refusals(kind: str) -> None:
    """TensorFlow 2.21 has these words."""
    area = Staged(kind)
    area.put(4, 0)
    for places, message in (((1, 0), "not strictly ordered"), ((), "Indices are empty")):
        with pytest.raises(InvalidArgumentError, match=message):
            failed(area.take(4, *places))
    for place, message in (
        (0, "The tensor for index '0' for key '4' was already initialized '2'"),
        (2, "Index '2' for key '4' was out of bounds '2'"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            failed(area.put(4, place))
    area.put(4, 1)
    with pytest.raises(InternalError, match="Output 0 of type float does not match declared output type int32"):
        failed(area.get("Unstage", np.int64(4), np.array([0], np.int32), dtypes=(INT32,)))
    with pytest.raises(InvalidArgumentError, match="key must be an int64 scalar"):
        failed(area.get("Unstage", np.array([1]), np.array([0], np.int32), dtypes=(FLOAT,)))
