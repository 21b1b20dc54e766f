"""A model starts from the checkpoint of one with another vocabulary; values are those of TensorFlow 2.21."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PartitaError,
    UnimplementedError,
)
from partita.graph.dtypes import Array
from tests.devices.kernels.files.test_checkpoints import save, text
from tests.devices.kernels.harness import check_shapes

W = np.arange(12, dtype=np.float32).reshape(4, 3)


def remapped(new: Path, old: Path, offset: int, count: int, size: int = -1) -> Any:
    """Runs GenerateVocabRemapping."""
    attrs = {"new_vocab_offset": offset, "num_new_vocab": count, "old_vocab_size": size}
    return check_shapes("GenerateVocabRemapping", text(new), text(old), **attrs)


def loaded(
    prefix: Path, rows: list[int], columns: list[int], values: list[float], width: int, name: str = "w"
) -> Array:
    """Runs LoadAndRemapMatrix with as many rows as are given."""
    inputs = np.array(rows, np.int64), np.array(columns, np.int64), np.array(values, np.float32)
    result: Array = check_shapes(
        "LoadAndRemapMatrix", text(prefix), text(name), *inputs, num_rows=len(rows), num_cols=width
    )
    return result


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A checkpoint with a matrix, a vector and a matrix of integers."""
    save(tmp_path / "x", {"w": W, "v": W[0], "i": np.eye(3, dtype=np.int64)})
    return tmp_path / "x"


@pytest.fixture
def vocabularies(tmp_path: Path) -> Path:
    """A folder with a new vocabulary, an old one, one with an entry twice and an empty one."""
    for name, content in (("new", "a\nb\nc\nd\n"), ("old", "c\na\nz\nb\n"), ("twice", "a\na\n"), ("empty", "")):
        (tmp_path / name).write_text(content)
    return tmp_path


def test_new_entries_are_found_among_the_old_ones(vocabularies: Path) -> None:
    """Those of a part of the new vocabulary, in the first lines of the old one."""
    new, old = vocabularies / "new", vocabularies / "old"
    for (offset, count, size), lines, present in (
        ((0, 4, -1), [1, 3, 0, -1], 3),
        ((1, 2, -1), [3, 0], 2),
        ((0, 4, 2), [1, -1, 0, -1], 2),
        ((0, 0, -1), [], 0),
    ):
        actual, number = remapped(new, old, offset, count, size)
        assert actual.tolist() == lines
        assert number == present
    assert remapped(vocabularies / "twice", old, 0, 2)[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("new", "old", "count", "size", "kind", "message"),
    [
        (
            "new",
            "old",
            5,
            -1,
            InvalidArgumentError,
            "lookup table size must be larger than last new vocab entry's line",
        ),
        ("new", "old", 2, 9, InvalidArgumentError, "Invalid vocab_size in .*old: expected 9 but got 4"),
        ("new", "twice", 2, -1, FailedPreconditionError, "Key a has 0 and trying to add value 1"),
        ("new", "empty", 2, -1, OutOfRangeError, "Read less bytes than requested"),
        ("none", "old", 2, -1, NotFoundError, "none; No such file or directory"),
    ],
)
def test_files_that_are_no_such_vocabularies_are_refused(
    vocabularies: Path, new: str, old: str, count: int, size: int, kind: type[PartitaError], message: str
) -> None:
    """With TensorFlow's status and words."""
    with pytest.raises(kind, match=message):
        remapped(vocabularies / new, vocabularies / old, 0, count, size)


def test_rows_and_columns_move_and_new_ones_are_filled(prefix: Path) -> None:
    """New values are taken row by row."""
    assert loaded(prefix, [3, -1, 1], [], [7, 8, 9], 3).tolist() == [[9, 10, 11], [7, 8, 9], [3, 4, 5]]
    assert loaded(prefix, [3, -1], [2, -1, 0], [1, 2, 3, 4], 3).tolist() == [[11, 1, 9], [2, 3, 4]]
    assert loaded(prefix, [2, -1, 0], [1, -1], [1, 2, 3, 4], 2).tolist() == [[7, 1], [2, 3], [1, 4]]
    assert loaded(prefix, [-1], [-1], [5], 1).tolist() == [[5]]
    assert loaded(prefix, [], [], [], 3).shape == (0, 3)


@given(st.permutations(range(4)), st.permutations(range(3)))
def test_permutations_permute(tmp_path_factory: pytest.TempPathFactory, rows: list[int], columns: list[int]) -> None:
    """Without new values the result is the matrix in another order."""
    path = tmp_path_factory.mktemp("permuted") / "x"
    save(path, {"w": W})
    np.testing.assert_array_equal(loaded(path, rows, columns, [], 3), W[rows][:, columns])


@pytest.mark.parametrize(
    ("rows", "columns", "values", "width", "name", "kind", "message"),
    [
        ([3, 0], [], [1], 3, "w", InvalidArgumentError, "1 elements, but only 0 elements were used to fill in missing"),
        ([3, -1], [], [1], 3, "w", InvalidArgumentError, "1 elements, but more missing values remain."),
        ([7, 2], [], [], 3, "w", InternalError, r"out of bounds: shape = \[4,3\], slice = 2,6:-"),
        (
            [3, 3],
            [],
            [],
            3,
            "w",
            UnimplementedError,
            "Old ID 3 is mapped to both new ID 0 and 1, which is not supported",
        ),
        (
            [3],
            [1, 1],
            [],
            2,
            "w",
            UnimplementedError,
            "Old ID 1 is mapped to both new ID 0 and 1, which is not supported",
        ),
        ([0], [1, 0], [], 3, "w", InvalidArgumentError, "col_remapping, but its size is 2 instead of being equal to"),
        ([0], [5], [], 1, "w", InvalidArgumentError, "col_remapping has a column that is not among 3"),
        (
            [0],
            [],
            [],
            2,
            "w",
            InvalidArgumentError,
            "size of its 2nd dimension is 3 instead of being equal to num_cols=2",
        ),
        ([0], [], [], 3, "v", InvalidArgumentError, r"has shape \[3\] of invalid rank 1 instead of expected shape"),
        ([0], [], [], 3, "i", InvalidArgumentError, "has invalid type int64 instead of expected type float"),
        ([0], [], [], 3, "q", NotFoundError, "Key q not found in checkpoint"),
    ],
)
def test_what_does_not_fit_the_matrix_is_refused(
    prefix: Path,
    rows: list[int],
    columns: list[int],
    values: list[float],
    width: int,
    name: str,
    kind: type[PartitaError],
    message: str,
) -> None:
    """With TensorFlow's status and words; a column that does not exist has anything in TensorFlow."""
    with pytest.raises(kind, match=message):
        loaded(prefix, rows, columns, values, width, name)
