"""Tensor arrays keep one tensor a place, written once; gradient arrays add up; misuse has TensorFlow's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import run

FLOW = np.float32(0)
FLOAT = DataType.FLOAT
ROW = np.array([1, 2], np.float32)


def index(number: int) -> Any:  # Any: numpy's scalar, which harness.run takes for a tensor
    return np.int32(number)


def array(size: int = 2, **attrs: Any) -> Array:  # Any: attr values
    """The handle of a new array."""
    handle: Array = run("TensorArrayV3", index(size), dtype=FLOAT, tensor_array_name="a", **attrs)[0]
    return handle


def write(handle: Array, place: int, value: Array = ROW) -> None:
    run("TensorArrayWriteV3", handle, index(place), value, FLOW)


def read(handle: Array, place: int, dtype: DataType = FLOAT) -> Array:
    value: Array = run("TensorArrayReadV3", handle, index(place), FLOW, dtype=dtype)
    return value


def size_of(handle: Array) -> int:
    return int(run("TensorArraySizeV3", handle, FLOW))


@given(st.permutations(range(4)))
def test_what_is_scattered_is_gathered(order: list[int]) -> None:
    """In any order of indices, by gather and by single reads."""
    handle, rows = array(4, clear_after_read=False), np.arange(8, dtype=np.float32).reshape(4, 2)
    run("TensorArrayScatterV3", handle, np.array(order, np.int32), rows, FLOW)
    gathered = run("TensorArrayGatherV3", handle, np.array(order, np.int32), FLOW, dtype=FLOAT)
    np.testing.assert_array_equal(gathered, rows)
    for number, place in enumerate(order):
        np.testing.assert_array_equal(read(handle, place), rows[number])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_what_is_split_is_concatenated(lengths: list[int]) -> None:
    """Parts may have any lengths; there may be none."""
    handle, rows = array(len(lengths)), np.arange(2.0 * sum(lengths), dtype=np.float32).reshape(-1, 2)
    run("TensorArraySplitV3", handle, rows, np.array(lengths, np.int64), FLOW)
    joined, actual_lengths = run("TensorArrayConcatV3", handle, FLOW, dtype=FLOAT)
    np.testing.assert_array_equal(joined, rows)
    assert actual_lengths.tolist() == lengths


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 5)), max_size=6), st.integers(0, 2))
def test_gradients_of_one_source_add_up(writes: list[tuple[int, int]], other: int) -> None:
    """Indices never written to are zeros of the forward element's shape; another source has another array."""
    forward = array(3)
    for place in range(3):
        write(forward, place)
    total = np.zeros((3, 2))
    for place, number in writes:
        gradients, _ = run("TensorArrayGradV3", forward, FLOW, source="g")
        write(gradients, place, ROW * number)
        total[place] += ROW * number
    gradients, _ = run("TensorArrayGradV3", forward, FLOW, source="g")
    np.testing.assert_array_equal(np.stack([read(gradients, place) for place in range(3)]), total)
    np.testing.assert_array_equal(read(run("TensorArrayGradV3", forward, FLOW, source="h")[0], other), [0, 0])


def test_gradients_may_have_further_dimensions() -> None:
    """The additional dimensions precede those of the forward array."""
    forward = array(1)
    write(forward, 0)
    gradients, _ = run("TensorArrayGradWithShape", forward, FLOW, np.array([3], np.int32), source="g")
    assert read(gradients, 0).shape == (3, 2)


def test_a_place_is_written_once_and_read_once() -> None:
    """More often only if the attrs, or a gradient array, allow it."""
    handle = array()
    write(handle, 0)
    with pytest.raises(InvalidArgumentError, match="index 0 because it has already been written to"):
        write(handle, 0)
    read(handle, 0)
    with pytest.raises(InvalidArgumentError, match="Could not read index 0 twice because it was cleared"):
        read(handle, 0)
    with pytest.raises(InvalidArgumentError, match="index 0 because it has already been read"):
        write(handle, 0)
    with pytest.raises(InvalidArgumentError, match=r"the element shape is not fully defined: <unknown>\."):
        read(handle, 1)


def test_an_array_grows_only_where_it_may() -> None:
    """An array with a gradient array cannot grow."""
    fixed, growing = array(), array(dynamic_size=True)
    with pytest.raises(InvalidArgumentError, match="write to index 5 but array is not resizeable and size is: 2"):
        write(fixed, 5)
    with pytest.raises(InvalidArgumentError, match=r"Max scatter index must be < array size \(4 vs. 2\)"):
        run("TensorArrayScatterV3", fixed, np.array([4], np.int32), ROW[None], FLOW)
    write(growing, 4)
    assert size_of(growing) == 5
    run("TensorArrayGradV3", growing, FLOW, source="g")
    with pytest.raises(InvalidArgumentError, match="write to index 9"):
        write(growing, 9)
    with pytest.raises(InvalidArgumentError, match="read from index 7 but array size is: 5"):
        read(growing, 7)


def test_elements_keep_to_the_declared_shape_and_type() -> None:
    """The first write declares the shape where all are said to be the same; then unwritten places are zeros."""
    handle = array(3, identical_element_shapes=True)
    write(handle, 0)
    with pytest.raises(InvalidArgumentError, match=r"value shape is \[1\] .* inferred element shape: \[2\]"):
        write(handle, 1, ROW[:1])
    np.testing.assert_array_equal(read(handle, 1), [0, 0])
    with pytest.raises(InvalidArgumentError, match="dtype is float but Op is trying to write dtype int32"):
        write(handle, 2, np.array([1], np.int32))
    with pytest.raises(InvalidArgumentError, match="dtype is float but Op requested dtype int32"):
        read(handle, 2, DataType.INT32)


def test_a_closed_array_is_of_no_more_use() -> None:
    """A closed array has no gradient array either."""
    handle = array()
    run("TensorArrayCloseV3", handle)
    for use in (lambda: write(handle, 0), lambda: read(handle, 0), lambda: size_of(handle)):
        with pytest.raises(InvalidArgumentError, match="TensorArray a has already been closed"):
            use()


def test_nothing_is_put_together_only_where_its_shape_is_known() -> None:
    """Rows of no elements need the shape of an element."""
    none, handle = np.zeros(0, np.int32), array(0)
    assert run("TensorArrayGatherV3", handle, none, FLOW, dtype=FLOAT, element_shape=(3,)).shape == (0, 3)
    with pytest.raises(UnimplementedError, match="element shape <unknown> is not fully defined"):
        run("TensorArrayGatherV3", handle, none, FLOW, dtype=FLOAT)
    assert run("TensorArrayConcatV3", handle, FLOW, dtype=FLOAT, element_shape_except0=(2,))[0].shape == (0, 2)


def test_rows_put_together_have_one_shape() -> None:
    """Whole elements in a gather, all dimensions but the first in a concatenation."""
    handle = array(clear_after_read=False)
    write(handle, 0)
    write(handle, 1, ROW[:1])
    with pytest.raises(InvalidArgumentError, match=r"Index 0 has shape: \[2\] but index 1 has shape: \[1\]"):
        run("TensorArrayGatherV3", handle, np.array([0, 1], np.int32), FLOW, dtype=FLOAT)
    assert run("TensorArrayConcatV3", handle, FLOW, dtype=FLOAT)[1].tolist() == [2, 1]
