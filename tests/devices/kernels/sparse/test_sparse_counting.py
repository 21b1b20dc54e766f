"""Counts equal Python's, for dense, sparse and ragged rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

NO_WEIGHTS = np.zeros(0, np.int64)
ROWS = st.lists(st.lists(st.integers(0, 6), max_size=5), min_size=1, max_size=4)


def ragged(rows: list[list[int]]) -> tuple[Array, Array]:
    """Splits and values."""
    return np.cumsum([0, *map(len, rows)]), np.array([value for row in rows for value in row], np.int64)


def sparse(rows: list[list[int]]) -> tuple[Array, Array, Array]:
    """Indices, values and shape."""
    indices = np.array([[i, k] for i, row in enumerate(rows) for k in range(len(row))], np.int64).reshape(-1, 2)
    return indices, ragged(rows)[1], np.array([len(rows), 5])


@given(ROWS, st.sampled_from([-1, 3, 9]), st.sampled_from([-1, 0, 4]), st.booleans())
def test_sparse_counts(rows: list[list[int]], least: int, most: int, binary: bool) -> None:
    """Values from the greatest length on are left out."""
    attrs: dict[str, Any] = {"minlength": least, "maxlength": most, "binary_output": binary}
    kept = [[value for value in row if most < 0 or value < most] for row in rows]
    counts = [((i, value), count) for i, row in enumerate(kept) for value, count in sorted(Counter(row).items())]
    greatest = max((value for row in rows for value in row), default=0)
    for op, inputs in (("RaggedCountSparseOutput", ragged(rows)), ("SparseCountSparseOutput", sparse(rows))):
        indices, values, shape = check_shapes(op, *inputs, NO_WEIGHTS, **attrs)
        assert list(map(tuple, indices.tolist())) == [place for place, _ in counts]
        assert values.tolist() == [1 if binary else count for _, count in counts]
        assert shape.tolist() == [len(rows), most if most >= 0 else max(least, greatest + 1)]


@given(ROWS, st.integers(0, 8), st.booleans())
def test_bins(rows: list[list[int]], size: int, binary: bool) -> None:
    """Values without a bin are left out."""
    expected = [[min(row.count(bin_), 1) if binary else row.count(bin_) for bin_ in range(size)] for row in rows]
    for op, inputs in (("RaggedBincount", ragged(rows)), ("SparseBincount", sparse(rows))):
        found = check_shapes(op, *inputs, np.int64(size), NO_WEIGHTS, binary_output=binary)
        assert found.reshape(len(rows), size).tolist() == expected


def test_weights_are_added_up() -> None:
    """Unless only the presence of a value counts. TensorFlow 2.21 gives these."""
    weights = np.array([0.5, 1, 2], np.float32)
    splits, values = ragged([[1, 1], [], [4]])
    assert check_shapes("RaggedCountSparseOutput", splits, values, weights, binary_output=False)[1].tolist() == [1.5, 2]
    assert check_shapes("RaggedBincount", splits, values, np.int64(3), weights).tolist() == [
        [0, 1.5, 0],
        [0] * 3,
        [0] * 3,
    ]
    one = check_shapes("RaggedCountSparseOutput", splits, values, weights, binary_output=True)
    assert one[1].tolist() == [1, 1]


def test_vectors_have_no_axis_of_rows() -> None:
    """Dense and sparse ones."""
    indices, values, shape = check_shapes(
        "DenseCountSparseOutput", np.array([3, 1, 1]), NO_WEIGHTS, binary_output=False
    )
    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[1], [3]], [2, 1], [4])
    matrix = check_shapes("DenseCountSparseOutput", np.array([[3, 1], [0, 0]]), NO_WEIGHTS, binary_output=False)
    assert (matrix[0].tolist(), matrix[1].tolist()) == ([[0, 1], [0, 3], [1, 0]], [1, 1, 2])
    vector = np.array([[0], [4]]), np.array([2, 2]), np.array([5])
    assert check_shapes("SparseBincount", *vector, np.int64(4), NO_WEIGHTS).tolist() == [0, 0, 2, 0]
    counted = check_shapes("SparseCountSparseOutput", *vector, NO_WEIGHTS, binary_output=False)
    assert [part.tolist() for part in counted] == [[[2]], [2], [3]]


SPLITS, VALUES = ragged([[1, 2], [3]])
SPARSE = sparse([[1, 2], [3]])


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("DenseCountSparseOutput", (-VALUES, NO_WEIGHTS), "Input values must all be non-negative"),
        (
            "DenseCountSparseOutput",
            (VALUES.reshape(1, 1, 3), NO_WEIGHTS),
            r"1 or 2-dimensional .* \[1,1,3\]",
        ),
        ("DenseCountSparseOutput", (VALUES, VALUES[:1]), "Weights and data must have the same shape. Weight shape: "),
        ("RaggedCountSparseOutput", (SPLITS + 1, VALUES, NO_WEIGHTS), "must start with 0, not with 1"),
        (
            "RaggedCountSparseOutput",
            (SPLITS[:2], VALUES, NO_WEIGHTS),
            "with the number of values, got 2 instead",
        ),
        (
            "RaggedCountSparseOutput",
            (SPLITS[:1], VALUES, NO_WEIGHTS),
            "Must provide at least 2 elements",
        ),
        (
            "SparseCountSparseOutput",
            (SPARSE[0] + 2, *SPARSE[1:], NO_WEIGHTS),
            "dimension 0 has value 2 which is not",
        ),
        (
            "SparseCountSparseOutput",
            (SPARSE[0], VALUES[:2], SPARSE[2], NO_WEIGHTS),
            "Number of values must match",
        ),
    ],
)
def test_wrong_inputs_are_refused(op: str, inputs: tuple[Any, ...], message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        run(op, *inputs, binary_output=False)


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("RaggedBincount", (SPLITS, -VALUES, np.int64(2), NO_WEIGHTS), "Input must be non-negative"),
        ("RaggedBincount", (SPLITS, VALUES, np.int64(-2), NO_WEIGHTS), r"size \(-2\) must be non-negative"),
        ("RaggedBincount", (SPLITS[:0], VALUES, np.int64(2), NO_WEIGHTS), "Splits must be non-empty"),
        ("RaggedBincount", (SPLITS, VALUES, np.int64(2), VALUES[:1]), "`weights` must be the same shape as `arr`"),
        ("SparseBincount", (SPARSE[0] + 5, *SPARSE[1:], np.int64(2), NO_WEIGHTS), r"indices\[0, :\] = \[5, 5\] is out"),
    ],
)
def test_wrong_bins_are_refused(op: str, inputs: tuple[Any, ...], message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        run(op, *inputs)
