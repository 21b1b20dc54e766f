"""Rows are replaced, added to and reduced in order; tensors are made from rows, and empty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import texts


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 99)), max_size=6))
def test_rows_change_one_after_the_other(updates: list[tuple[int, int]]) -> None:
    """Row numbers count modulo the number of rows, and the input stays as it was."""
    x = np.arange(6, dtype=np.int32).reshape(3, 2)
    numbers = np.array([number for number, _ in updates], np.int32)
    rows = np.array([[value, -value] for _, value in updates], np.int32).reshape(-1, 2)
    before, replaced, total = x.copy(), x.copy(), x.copy()
    for number, row in zip(numbers, rows, strict=True):
        replaced[number % 3] = row
        total[number % 3] += row
    np.testing.assert_array_equal(check_shapes("InplaceUpdate", x, numbers, rows), replaced)
    added = check_shapes("InplaceAdd", x, numbers, rows)
    np.testing.assert_array_equal(added, total)
    np.testing.assert_array_equal(check_shapes("InplaceSub", added, numbers, rows), x)
    np.testing.assert_array_equal(x, before)


def test_strings_can_only_be_replaced() -> None:
    """TensorFlow 2.21 has these words."""
    one = np.array([0], np.int32)
    assert run("InplaceUpdate", texts(b"a", b"b"), one, texts(b"c")).tolist() == [b"c", b"b"]
    with pytest.raises(InvalidArgumentError, match="Unsupported data type: string"):
        run("InplaceAdd", texts(b"a"), one, texts(b"c"))


@pytest.mark.parametrize(
    ("numbers", "rows", "message"),
    [
        (np.int32(0), np.ones((1, 2)), r"i must be a vector. \[\]"),
        (np.array([0, 1], np.int32), np.ones((1, 2)), r"i and x shape doesn't match at index 0: \[2\] vs. \[1,2\]"),
        (np.array([0], np.int32), np.ones((1, 3)), r"x and v shape doesn't match at index 1 : \[3,2\] vs. \[1,3\]"),
        (np.array([0], np.int32), np.ones(1), "ranks differ"),
    ],
)
def test_rows_that_do_not_fit(numbers: np.ndarray, rows: np.ndarray, message: str) -> None:
    """TensorFlow 2.21 has these words."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("InplaceUpdate", np.zeros((3, 2)), np.asarray(numbers), rows)


def test_rows_become_a_tensor() -> None:
    """As many as the declared shape has; all shapes must be known before the run."""
    rows = [np.array([[1, 2]]), np.array([[3, 4]])]
    np.testing.assert_array_equal(check_shapes("ParallelConcat", rows, shape=(2, 2)), [[1, 2], [3, 4]])
    with pytest.raises(InvalidArgumentError, match=r"do not fill \[3,2\]"):
        run("ParallelConcat", rows, shape=(3, 2))
    for inputs, message in (
        ([(1, None), (1, 2)], "All input shapes must be fully defined"),
        ([(), ()], "The rank of all input shapes must be greater than 0, but input 0 had rank 0"),
        ([(1, 2), (2, 2)], "Size of first dimension must be 1"),
        ([(1, 2), (1, 3)], "must be equal"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            shapes("ParallelConcat", inputs, shape=(2, 2))


def test_empty_tensors_have_the_requested_shape() -> None:
    """Their elements are zeros."""
    shape = np.array([2, 0, 3], np.int32)
    assert check_shapes("Empty", shape, dtype=DataType.FLOAT).shape == (2, 0, 3)
    assert run("Empty", np.array([1], np.int32), dtype=DataType.STRING, init=True).tolist() == [b""]
    with pytest.raises(InvalidArgumentError, match="Dimension -1 must be >= 0"):
        run("Empty", np.array([-1], np.int32), dtype=DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match=r"shape must be a vector of int32, got shape \[\]"):
        run("Empty", np.int32(2), dtype=DataType.FLOAT)
