"""A strided slice of a variable is overwritten as numpy would, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState
from partita.errors import FailedPreconditionError, InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import run, shapes
from tests.devices.kernels.variables.variable_tensors import handle, reference


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def assigned(start: np.ndarray, *inputs: np.ndarray, **masks: Any) -> np.ndarray:
    """The variable after the assignment, which both kinds of variables must agree on."""
    variable, state = reference(start), DeviceState()
    assert run("StridedSliceAssign", variable, *inputs, **masks) is variable
    resource = handle(state, start)
    run("ResourceStridedSliceAssign", resource, *inputs, state=state, **masks)
    read = run("ReadVariableOp", resource, state=state, dtype=DataType.FLOAT)
    np.testing.assert_array_equal(read, variable.read())
    result: np.ndarray = variable.read()
    return result


BOUND = st.integers(-5, 5)


@given(st.tuples(BOUND, BOUND, st.sampled_from([-2, -1, 1, 2])), st.integers(0, 1), st.booleans())
def test_the_slice_is_numpys(bounds: tuple[int, int, int], mask: int, broadcasts: bool) -> None:
    """What was read before the assignment stays as it was."""
    begin, end, stride = bounds
    start = np.arange(12, dtype=np.float32).reshape(4, 3)
    before, expected = start.copy(), start.copy()
    index = slice(None if mask else begin, end, stride)
    value = np.float32(7) if broadcasts else -expected[index] - 1
    expected[index] = value
    actual = assigned(start, ints(begin), ints(end), ints(stride), np.asarray(value), begin_mask=mask)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(start, before)


@pytest.mark.parametrize(
    ("bounds", "value", "masks", "expected"),
    [
        (((0, 0), (1, 1), (1, 1)), [[5]], {"shrink_axis_mask": 3}, [[5, 1, 2], [3, 4, 5]]),
        (((0, 2), (0, 0), (1, -1)), [[1, 2], [3, 4]], {"ellipsis_mask": 1}, [[0, 2, 1], [3, 4, 3]]),
        (((0, 0), (0, 1), (1, 1)), [[1, 1]] * 3, {}, [[0, 1, 2], [3, 4, 5]]),
        (((0, 0), (1, 1), (1, 1)), [[[7, 8, 9]]], {"new_axis_mask": 1}, [[7, 8, 9], [3, 4, 5]]),
    ],
)
def test_examples(bounds: Any, value: Any, masks: dict[str, int], expected: Any) -> None:
    """TensorFlow 2.21 gives these, also for a value that does not fit an empty slice."""
    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    actual = assigned(start, *(ints(*bound) for bound in bounds), np.array(value, np.float32), **masks)
    np.testing.assert_array_equal(actual, np.array(expected, np.float32))


def test_a_scalar_is_overwritten_whole() -> None:
    """With no bounds at all, or with a new axis."""
    assert assigned(np.array(3, np.float32), ints(), ints(), ints(), np.array([4], np.float32)) == 4
    assert assigned(np.array(3, np.float32), *[ints(1)] * 3, np.array([5], np.float32), new_axis_mask=1) == 5


@pytest.mark.parametrize(
    ("value", "masks", "message"),
    [
        (np.ones((1, 2), np.float32), {}, r"Cannot broadcast input shape \[1,2\] into final shape \[1,3\]"),
        (np.float32(1), {"shrink_axis_mask": 1}, "slice index 2 of dimension 0 out of bounds."),
    ],
)
def test_a_refused_assignment_changes_nothing(value: np.ndarray, masks: dict[str, Any], message: str) -> None:
    """The errors have the words of StridedSlice and of broadcasting."""
    variable = reference(np.zeros((2, 3), np.float32))
    begin = ints(2 if masks else 1)
    with pytest.raises(InvalidArgumentError, match=message):
        run("StridedSliceAssign", variable, begin, ints(2), ints(1), value, **masks)
    np.testing.assert_array_equal(variable.read(), np.zeros((2, 3)))


def test_the_variable_must_have_a_value_of_that_type() -> None:
    """A reference without a value, and a resource of another type."""
    with pytest.raises(FailedPreconditionError, match="Attempting to use uninitialized value v"):
        run("StridedSliceAssign", reference(), ints(0), ints(1), ints(1), np.float32(1))
    state = DeviceState()
    resource = handle(state, np.zeros(2, np.float32))
    with pytest.raises(InvalidArgumentError, match=r"wrong dtype\. Expected float got int32"):
        run("ResourceStridedSliceAssign", resource, ints(0), ints(1), ints(1), np.int32(1), state=state)


def test_shapes() -> None:
    """A reference has the shape of its variable, whatever the slice."""
    assert shapes("StridedSliceAssign", (2, None), (1,), (1,), (1,), ()) == [(2, None)]
    assert shapes("ResourceStridedSliceAssign", (), (1,), (1,), (1,), ()) == []
