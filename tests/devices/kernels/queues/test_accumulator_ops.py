"""Accumulators give the mean, or the sum, of gradients that are not stale, to waiting calls in their order."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.calls import FakeCall, FakeStep, assert_refused, start
from tests.devices.kernels.harness import run
from tests.devices.kernels.queued import FLOAT, floats


class Accumulated:
    """A device with one accumulator."""

    def __init__(self, kind: str = "", shape: Any = (2,), dtype: DataType = FLOAT, **attrs: Any) -> None:
        self.state = DeviceState(seed=0)
        self.kind, self.dtype = kind, dtype
        op = f"{kind}ConditionalAccumulator"
        self.handle = run(op, state=self.state, name="a", dtype=dtype, shape=shape, **attrs)

    def apply(self, step: int, gradient: Array) -> FakeCall:
        op = f"{self.kind}AccumulatorApplyGradient"
        return start(op, self.handle, np.int64(step), gradient, state=self.state)

    def apply_slices(self, step: int, indices: Any, values: Any, shape: Any = (4, 2)) -> FakeCall:
        slices = np.array(indices, np.int64), np.array(values, np.float32), np.array(shape or (), np.int64)
        op, known = "SparseAccumulatorApplyGradient", shape is not None
        return start(op, self.handle, np.int64(step), *slices, state=self.state, has_known_shape=known)

    def take(self, required: int, step: FakeStep | None = None) -> FakeCall:
        op = f"{self.kind}AccumulatorTakeGradient"
        return start(op, self.handle, np.int32(required), state=self.state, step=step, dtype=self.dtype)

    def set_step(self, step: int) -> None:
        run(f"{self._dense}AccumulatorSetGlobalStep", self.handle, np.int64(step), state=self.state)

    @property
    def count(self) -> int:
        return int(run(f"{self._dense}AccumulatorNumAccumulated", self.handle, state=self.state))

    @property
    def _dense(self) -> str:
        return self.kind.removeprefix("Sparse")


@given(st.lists(st.integers(-8, 8), min_size=1, max_size=6), st.sampled_from(["", "Resource"]))
def test_the_mean_is_that_of_all_gradients(items: list[int], kind: str) -> None:
    accumulator, summing = Accumulated(kind), Accumulated(kind, reduction_type="SUM")
    for item in items:
        accumulator.apply(0, floats(item, 1))
        summing.apply(0, floats(item, 1))
    assert accumulator.count == len(items)
    mean = np.float32(sum(items)) / np.float32(len(items))
    assert accumulator.take(1).outputs[0].tolist() == [mean, 1]
    assert summing.take(1).outputs[0].tolist() == [sum(items), len(items)]
    assert accumulator.count == 0


def test_stale_gradients_are_dropped() -> None:
    accumulator = Accumulated()
    accumulator.apply(0, floats(1, 2))
    accumulator.take(1)
    assert accumulator.apply(0, floats(1, 2)).outputs == ()
    assert accumulator.count == 0
    accumulator.apply(1, floats(1, 2))
    accumulator.set_step(9)
    accumulator.apply(8, floats(1, 2))
    assert accumulator.count == 1


def test_who_came_first_is_served_first() -> None:
    accumulator, step = Accumulated(), FakeStep()
    two, gone, one = accumulator.take(2), accumulator.take(1, step), accumulator.take(1)
    step.cancel()
    accumulator.apply(9, floats(1, 2))
    assert two.outcome is one.outcome is None
    accumulator.apply(9, floats(3, 2))
    assert two.outputs[0].tolist() == [2, 2]
    accumulator.apply(9, floats(5, 5))
    assert one.outputs[0].tolist() == [5, 5]
    assert gone.outcome is None


def test_the_mean_of_a_slice_is_that_of_the_gradients_that_have_it() -> None:
    accumulator = Accumulated("Sparse", (4, 2))
    accumulator.apply_slices(0, [0, 2], [[1, 2], [3, 4]])
    accumulator.apply_slices(0, [2, 3], [[1, 1], [1, 2]])
    indices, values, shape = accumulator.take(2).outputs
    assert indices.tolist() == [0, 2, 3]
    assert values.tolist() == [[1, 2], [2, 2.5], [1, 2]]
    assert shape.tolist() == [4, 2]


SLICE = st.dictionaries(st.integers(0, 5), st.integers(-4, 4), max_size=5)


@given(st.lists(SLICE, min_size=1, max_size=4))
def test_slices_add_up_as_tensors_do(gradients: list[dict[int, int]]) -> None:
    accumulator, total = Accumulated("Sparse", (6,), reduction_type="SUM"), np.zeros(6)
    for gradient in gradients:
        accumulator.apply_slices(0, sorted(gradient), [gradient[i] for i in sorted(gradient)], (6,))
        np.add.at(total, sorted(gradient), [gradient[i] for i in sorted(gradient)])
    indices, values, _ = accumulator.take(len(gradients)).outputs
    actual = np.zeros(6)
    actual[indices] = values
    assert actual.tolist() == total.tolist()


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    accumulator = Accumulated()
    accumulator.apply(0, floats(1, 2))
    message = "Shape mismatch: expected [2], got [3]"
    assert_refused(accumulator.apply(0, floats(1, 2, 3)), InvalidArgumentError, message)
    for number in (0, -1):
        message = f"Argument num_required must be positive, but was {number}"
        assert_refused(accumulator.take(number), InvalidArgumentError, message)
    assert accumulator.take(1).outputs[0].tolist() == [1, 2]


def test_slices_that_do_not_fit_are_refused_in_tensorflows_words() -> None:
    accumulator = Accumulated("Sparse", (4, 2))
    for indices, values, shape, message in (
        ([9], [[1, 2]], (4, 2), "Shape mismatch: index of slice 0 exceeded limits of shape; index is 9 exceeded 4"),
        ([1], [[1, 2, 3]], (4, 2), "Shape mismatch: expected values dim 1 to be 2, got 3"),
        ([1], [[1, 2]], (4, 3), "Shape mismatch: expected shape dim 1 to be 2, got 3"),
        ([1, 2], [[1, 2]], (4, 2), "Expected 2 non-empty input values, got 1"),
        ([[1]], [[1, 2]], (4, 2), "Input indices should be vector but received shape: [1,1]"),
        ([1], 1, (4, 2), "Values cannot be 0-dimensional."),
    ):
        assert_refused(accumulator.apply_slices(0, indices, values, shape), InvalidArgumentError, message)
    assert accumulator.count == 0
