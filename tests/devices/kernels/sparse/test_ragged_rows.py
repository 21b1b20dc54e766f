"""Rows of ragged tensors are those of nested lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.sparse.sparse_tensors import dense_of

ROWS = st.lists(st.lists(st.integers(1, 9), max_size=4), min_size=1, max_size=4)


def ragged(rows: list[list[int]]) -> tuple[Array, Array]:
    """Splits and values."""
    return np.cumsum([0, *map(len, rows)]), np.array([value for row in rows for value in row], np.int64)


def rows_of(splits: Array, values: Array) -> list[list[int]]:
    """The rows as lists."""
    return [part.tolist() for part in np.split(values, splits[1:-1])]


@given(ROWS, st.data())
def test_gathering_picks_rows(rows: list[list[int]], data: st.DataObject) -> None:
    """Any of them, any number of times."""
    splits, values = ragged(rows)
    picked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5))
    found = check_shapes("RaggedGather", [splits], values, np.array(picked, np.int64), OUTPUT_RAGGED_RANK=1)
    assert rows_of(*found) == [rows[i] for i in picked] or not picked


def test_indices_of_other_ranks() -> None:
    """Their axes become ragged ones; a scalar picks one row. TensorFlow 2.21 gives these."""
    splits, values = ragged([[1, 2], [], [3]])
    matrix = np.array([[2, 0], [0, 1]])
    outer, inner, flat = check_shapes("RaggedGather", [splits], values, matrix, OUTPUT_RAGGED_RANK=2)
    assert (outer.tolist(), inner.tolist(), flat.tolist()) == ([0, 2, 4], [0, 1, 3, 5, 5], [3, 1, 2, 1, 2])
    assert check_shapes("RaggedGather", [splits], values, np.int64(0), OUTPUT_RAGGED_RANK=0).tolist() == [1, 2]
    deep = [splits, np.array([0, 1, 3, 3])]
    found = check_shapes("RaggedGather", deep, np.arange(6.0).reshape(3, 2), np.array([2, 0]), OUTPUT_RAGGED_RANK=2)
    assert [part.tolist() for part in found] == [[0, 1, 3], [0, 0, 1, 3], [[0, 1], [2, 3], [4, 5]]]


@given(ROWS)
def test_the_sparse_tensor_has_all_values(rows: list[list[int]]) -> None:
    """Row by row."""
    parts = check_shapes("RaggedTensorToSparse", [ragged(rows)[0]], ragged(rows)[1])
    width = max(map(len, rows))
    assert dense_of(parts).tolist() == [row + [0] * (width - len(row)) for row in rows]


def test_inner_axes_are_axes_of_the_sparse_tensor() -> None:
    """TensorFlow 2.21 gives these."""
    splits, values = np.array([0, 2, 2, 3], np.int32), np.arange(6, dtype=np.float32).reshape(3, 2)
    indices, flat, shape = check_shapes("RaggedTensorToSparse", [splits], values)
    assert indices.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [2, 0, 0], [2, 0, 1]]
    assert (flat.tolist(), shape.tolist()) == ([0, 1, 2, 3, 4, 5], [3, 2, 2])


@given(ROWS)
def test_empty_rows_are_filled(rows: list[list[int]]) -> None:
    """With one default each; the gradient goes back the same ways."""
    ids = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    filled = check_shapes("RaggedFillEmptyRows", ids, ragged(rows)[1], np.int64(len(rows)), np.int64(0))
    numbers, values, empty, places = filled
    assert values.tolist() == [value for row in rows for value in row or [0]]
    assert numbers.tolist() == [i for i, row in enumerate(rows) for _ in row or [0]]
    assert empty.tolist() == [not row for row in rows]
    back, default = check_shapes("RaggedFillEmptyRowsGrad", places, values + np.int64(1))
    assert back.tolist() == (ragged(rows)[1] + 1).tolist()
    assert default == empty.sum()


SPLITS, VALUES = ragged([[1, 2], [], [3]])


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("RaggedGather", ([SPLITS], VALUES, np.array([3])), r"indices\[0\] = 3 is not in \[0, 3\)"),
        ("RaggedGather", ([SPLITS * 3], VALUES, np.array([2])), "Ragged splits must not point past values"),
        ("RaggedGather", ([SPLITS[[0, 1, 0, 3]]], VALUES, np.array([1])), "Ragged splits must be sorted"),
        ("RaggedGather", ([SPLITS], VALUES[0], np.array([1])), "params.rank must be nonzero"),
        ("RaggedTensorToSparse", ([SPLITS + 1], VALUES), "First value of ragged splits must be 0"),
        ("RaggedTensorToSparse", ([SPLITS[[0, 1, 0, 3]]], VALUES), "non decreasing, but we got 2 followed by 0"),
        ("RaggedTensorToSparse", ([SPLITS[:2]], VALUES), "Final value of ragged splits must match the length"),
        ("RaggedTensorToSparse", ([SPLITS[:0]], VALUES), "ragged splits may not be empty"),
        ("RaggedFillEmptyRows", (VALUES, VALUES, np.int64(3), np.int64(0)), r"indices\(2, 0\) is invalid: 3 >= 3"),
        (
            "RaggedFillEmptyRows",
            (VALUES, VALUES[:2], np.int64(4), np.int64(0)),
            r"length of `values` \(2\) must",
        ),
        ("RaggedFillEmptyRowsGrad", (np.array([7]), VALUES), r"reverse index must be in \[0, 3\) but got 7"),
    ],
)
def test_wrong_inputs_are_refused(op: str, inputs: tuple[Any, ...], message: str) -> None:
    """In TensorFlow's words."""
    attrs: dict[str, Any] = {"OUTPUT_RAGGED_RANK": 1} if op == "RaggedGather" else {}
    with pytest.raises(InvalidArgumentError, match=message):
        run(op, *inputs, **attrs)
