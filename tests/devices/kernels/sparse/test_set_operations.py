"""Sets of rows are Python's sets; the edit distance is a metric."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.sparse.set_operations import levenshtein
from partita.errors import InternalError, InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

WORDS = st.lists(st.integers(0, 2), max_size=6)
OPERATIONS = {"a-b": set.difference, "b-a": lambda a, b: b - a, "intersection": set.intersection, "union": set.union}


def dense(rows: list[list[int]], width: int) -> Array:
    """Rows as a matrix, cut or filled with zeros."""
    return np.array([(row + [0] * width)[:width] for row in rows], np.int64).reshape(len(rows), width)


@given(st.lists(st.tuples(WORDS, WORDS), max_size=3), st.sampled_from(sorted(OPERATIONS)))
def test_rows_are_sets(pairs: list[tuple[list[int], list[int]]], operation: str) -> None:
    """Each row is the set that Python computes, in ascending order, as a sparse tensor."""
    a, b = dense([x for x, _ in pairs], 3), dense([y for _, y in pairs], 2)
    indices, values, shape = check_shapes("DenseToDenseSetOperation", a, b, set_operation=operation)
    expected = [sorted(OPERATIONS[operation](set(x.tolist()), set(y.tolist()))) for x, y in zip(a, b, strict=True)]
    assert indices.tolist() == [[i, k] for i, row in enumerate(expected) for k in range(len(row))]
    assert values.tolist() == [value for row in expected for value in row]
    assert shape.tolist() == [len(pairs), max(map(len, expected), default=0)]


@given(WORDS, WORDS, WORDS)
def test_distance_is_a_metric(a: list[int], b: list[int], c: list[int]) -> None:
    """Zero only for equal sequences, symmetric, with the triangle inequality, at most the longer length."""
    assert (levenshtein(a, b) == 0) == (a == b)
    assert levenshtein(a, b) == levenshtein(b, a) <= max(len(a), len(b))
    assert levenshtein(a, c) <= levenshtein(a, b) + levenshtein(b, c)


def sparse(places: list[list[int]], values: list[int], shape: list[int]) -> tuple[Array, Array, Array]:
    """The three parts of a sparse tensor."""
    return np.array(places, np.int64).reshape(-1, 2), np.array(values, np.int64), np.array(shape, np.int64)


HYPOTHESIS = sparse([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [3, 2])
TRUTH = sparse([[0, 0], [0, 2], [1, 0]], [1, 3, 4], [3, 3])


def test_distance_of_sparse_sequences() -> None:
    """Normalised by the truth's length; infinite without a truth, zero without both."""
    assert check_shapes("EditDistance", *HYPOTHESIS, *TRUTH).tolist() == [0.5, 1, np.inf]
    assert run("EditDistance", *HYPOTHESIS, *TRUTH, normalize=False).tolist() == [1, 1, 1]
    wider = (*HYPOTHESIS[:2], np.array([4, 2], np.int64))
    assert check_shapes("EditDistance", *wider, *TRUTH).tolist() == [0.5, 1, np.inf, 0]


def test_what_does_not_fit_is_refused() -> None:
    """Shapes, operations, and indices outside of the declared shape are checked."""
    a = np.zeros((2, 1), np.int64)
    with pytest.raises(InvalidArgumentError, match=r"Mismatched shapes \[2\] vs. \[1\]"):
        run("DenseToDenseSetOperation", a, a[:1], set_operation="union")
    with pytest.raises(InvalidArgumentError, match="Invalid set_operation foo"):
        run("DenseToDenseSetOperation", a, a, set_operation="foo")
    with pytest.raises(InvalidArgumentError, match="has rank 1 < 2"):
        run("DenseToDenseSetOperation", a[0], a, set_operation="union")
    with pytest.raises(InvalidArgumentError, match=r"Expected hypothesis_values\.NumElements"):
        run("EditDistance", HYPOTHESIS[0], HYPOTHESIS[1][:2], HYPOTHESIS[2], *TRUTH)
    with pytest.raises(InternalError):
        run("EditDistance", *sparse([[5, 0]], [1], [3, 2]), *TRUTH)


@given(st.sampled_from(["a-b", "b-a", "union", "intersection"]), st.integers(0, 99))
def test_sparse_sets_equal_dense_ones(operation: str, seed: int) -> None:
    """Whichever operand is sparse."""
    a, b = np.random.default_rng(seed).integers(0, 5, (2, 3, 4))
    expected = check_shapes("DenseToDenseSetOperation", a, b, set_operation=operation)
    places = np.argwhere(b >= 0)
    sparse = [(places, x[tuple(places.T)], np.array([3, 4])) for x in (a, b)]
    half = check_shapes("DenseToSparseSetOperation", a, *sparse[1], set_operation=operation)
    whole = check_shapes("SparseToSparseSetOperation", *sparse[0], *sparse[1], set_operation=operation)
    for found in (half, whole):
        for part, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part, other)
    sizes = check_shapes("SetSize", *sparse[0])
    assert sizes.tolist() == [len(set(row)) for row in a.tolist()]


def test_sparse_sets_are_checked() -> None:
    """Their order, unless it is waived, their ranks and groups; in TensorFlow's words."""
    indices, values = np.array([[0, 2], [0, 0]]), np.array([1, 2])
    shape = np.array([2, 3])
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = \[0,0\] is out of order"):
        run("SetSize", indices, values, shape)
    assert run("SetSize", indices, values, shape, validate_indices=False).tolist() == [2, 0]
    with pytest.raises(InvalidArgumentError, match=r"Invalid rank 1\."):
        run("SetSize", indices[:, :1], values, shape[:1])
    with pytest.raises(InvalidArgumentError, match=r"Mismatched shapes \[3\] vs \[2\]"):
        run("DenseToSparseSetOperation", np.ones((3, 3), np.int64), indices[::-1], values, shape, set_operation="union")
