"""Kernels that read and write the diagonals of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import DTYPES, filled, ints, same, shapes_of

MATRIX = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
ALIGNMENTS = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


@st.composite
def bands(draw: st.DrawFn) -> tuple[Array, Array]:
    """Matrices and the `k` of a band of their diagonals."""
    shape = (*draw(shapes_of(most=1, smallest=1)), draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    lower = draw(st.integers(1 - shape[-2], shape[-1] - 1))
    upper = draw(st.integers(lower, shape[-1] - 1))
    return filled(shape, draw(st.sampled_from([np.float32, np.int64])), 4), ints(lower, upper)


@given(bands(), st.sampled_from(ALIGNMENTS))
def test_diagonals_that_are_written_are_read_back(case: tuple[Array, Array], align: str) -> None:
    x, k = case
    one, zero = x.dtype.type(1), x.dtype.type(0)
    diagonals = check_shapes("MatrixDiagPartV3", x, k, zero, align=align)
    assert same(check_shapes("MatrixSetDiagV3", x, diagonals, k, align=align), x)
    band = run("MatrixSetDiagV3", np.zeros_like(x), diagonals, k, align=align)
    kept = np.triu(np.tril(x, int(k[1])), int(k[0]))
    assert same(band, kept)
    rows, columns = np.int32(x.shape[-2]), np.int32(x.shape[-1])
    distance = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    outside = (distance < k[0]) | (distance > k[1])
    actual = check_shapes("MatrixDiagV3", diagonals, k, rows, columns, one, align=align)
    assert same(actual, np.where(outside, one, x))


@given(bands(), st.sampled_from(ALIGNMENTS))
def test_matrices_that_are_views_have_diagonals_too(case: tuple[Array, Array], align: str) -> None:
    """The same is read from a transposed tensor, and written into a copy of it, as for one in row-major order."""
    x, k = case
    view = np.swapaxes(np.ascontiguousarray(np.swapaxes(x, -1, -2)), -1, -2)
    diagonals = run("MatrixDiagPartV3", view, k, x.dtype.type(0), align=align)
    assert same(diagonals, run("MatrixDiagPartV3", x, k, x.dtype.type(0), align=align))
    written = run("MatrixSetDiagV3", view, diagonals + x.dtype.type(1), k, align=align)
    assert same(written, run("MatrixSetDiagV3", x, diagonals + x.dtype.type(1), k, align=align))


def test_diagonals_beyond_the_matrix_are_empty() -> None:
    """Five diagonals of one element: a matrix of one element holds the main one, and the others have no place."""
    diagonals = np.arange(1, 6, dtype=np.float32)[:, None]
    size, zero = np.int32(-1), np.float32(0)
    for align in ALIGNMENTS:
        assert run("MatrixDiagV3", diagonals, ints(-2, 2), size, size, zero, align=align).tolist() == [[3]]


@given(bands())
def test_band_part_keeps_a_band(case: tuple[Array, Array]) -> None:
    x, k = case
    below, above = -min(int(k[0]), 0), max(int(k[1]), 0)
    actual = check_shapes("MatrixBandPart", x, np.int64(below), np.int64(above))
    assert same(actual, np.triu(np.tril(x, above), -below))
    assert same(run("MatrixBandPart", x, np.int64(-1), np.int64(-1)), x)
    assert same(run("MatrixBandPart", x, np.int64(-1), np.int64(0)), np.tril(x))


@given(shapes_of(1, 3), st.sampled_from([d for d in DTYPES if d is not object]))
def test_main_diagonals_go_in_and_out(shape: tuple[int, ...], dtype: Any) -> None:
    x = filled(shape, dtype, 2)
    assert same(check_shapes("DiagPart", check_shapes("Diag", x)), x)
    assert same(check_shapes("MatrixDiagPart", check_shapes("MatrixDiag", x)), x)
    square = run("MatrixDiag", x)
    assert same(check_shapes("MatrixSetDiag", np.zeros_like(square), x), square)


def test_short_diagonals_are_pushed_to_their_side() -> None:
    band = {a: run("MatrixDiagPartV3", MATRIX, ints(-1, 1), np.float32(0), align=a).tolist() for a in ALIGNMENTS}
    assert band["RIGHT_LEFT"] == [[2, 7, 12], [1, 6, 11], [5, 10, 0]]
    assert band["RIGHT_RIGHT"] == [[2, 7, 12], [1, 6, 11], [0, 5, 10]]
    assert same(run("MatrixDiagPartV2", MATRIX, ints(-1, 1), np.float32(0)), np.array(band["LEFT_LEFT"], np.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("MatrixDiag", np.float32(1)), "diagonal must be at least 1-dim, received shape: []"),
        (("MatrixDiagPart", MATRIX[0]), "input must be at least 2-dim, received shape: [4]"),
        (
            ("MatrixDiagPartV3", MATRIX, np.int32(5), np.float32(0)),
            "lower_diag_index is out of bound: 5. It must be between -3 and 4",
        ),
        (
            ("MatrixDiagPartV3", MATRIX, ints(1, -1), np.float32(0)),
            "lower_diag_index must not be larger than upper_diag_index: 1 > -1",
        ),
        (
            ("MatrixBandPart", MATRIX, np.int64(5), np.int64(0)),
            "num_lower must be negative or less or equal to number of rows (3) got: 5",
        ),
        (("DiagPart", MATRIX), "Invalid shape [3,4]: dimensions 0 and 1 do not match."),
    ],
)
def test_what_has_no_such_diagonal_is_refused_in_these_words(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call)
    assert caught.value.message == message
