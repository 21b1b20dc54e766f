"""Which elements of a matrix belong to a band of diagonals, and shape functions of the ops that read and write them.

Diagonals are numbered from 0, the main one; those above it are positive. They are listed from the uppermost down, and
padded to the length of the longest. The kernels share `DiagonalBand`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import InvalidArgumentError
from ...analysis.dims import integer, integers
from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    shape_fn,
    unchanged,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape


@dataclass(frozen=True, slots=True)
class DiagonalBand:
    """Diagonals `lower` to `upper` of matrices."""

    lower: int
    upper: int

    @property
    def count(self) -> int:
        """Number of diagonals."""
        return self.upper - self.lower + 1

    def longest(self, rows: int, columns: int) -> int:
        """Length of the longest diagonal of the band in a matrix of that size."""
        return min(rows + min(self.upper, 0), columns - max(self.lower, 0))

    def least(self, length: int) -> tuple[int, int]:
        """The smallest number of rows and columns for which the longest diagonal has that length."""
        return length - min(self.upper, 0), length + max(self.lower, 0)

    def spans(self, rows: int, columns: int, align: str) -> Iterator[tuple[int, slice]]:
        """The number of each diagonal, and the span that it takes of its row of the [count, longest] array.

        `align` says to which side superdiagonals, then subdiagonals, are pushed: "RIGHT_LEFT" and so on.
        """
        above, below = align.split("_")
        longest = self.longest(rows, columns)
        for number in range(self.upper, self.lower - 1, -1):
            length = max(0, DiagonalBand(number, number).longest(rows, columns))
            pushed_left = (number >= 0 and above == "LEFT") or (number <= 0 and below == "LEFT")
            start = 0 if pushed_left else longest - length
            yield number, slice(start, start + length)


def band_of(values: Sequence[int], matrix: tuple[int, int] | None = None, end: str = ".") -> DiagonalBand:
    """The band that input `k` holds: one number, or the lowest and the highest; checked against `matrix` if given."""
    if not values:
        raise InvalidArgumentError("Expected diag_index to have at least 1 element")
    if len(values) > 2:
        raise InvalidArgumentError(f"diag_index must have only one or two elements, received {len(values)} elements.")
    lower, upper = values[0], values[-1]
    if matrix is not None:
        check_inside(DiagonalBand(lower, upper), *matrix, end)
    if lower > upper:
        raise InvalidArgumentError(f"lower_diag_index must not be larger than upper_diag_index: {lower} > {upper}")
    return DiagonalBand(lower, upper)


def check_inside(band: DiagonalBand, rows: int, columns: int, end: str = ".") -> None:
    """InvalidArgumentError unless both ends of the band are diagonals of a matrix of that size."""
    for name, k in ((f"{band.lower}{end}", band.lower), (f"{band.upper}", band.upper)):
        if k != 0 and not -rows < k < columns:
            which = "lower" if k == band.lower else "upper"
            raise InvalidArgumentError(
                f"{which}_diag_index is out of bound: {name} It must be between {-rows} and {columns}"
            )


def matrix_size(band: DiagonalBand, length: int, rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of a matrix whose band has that longest diagonal; -1 asks for the smallest that fits."""
    least_rows, least_columns = band.least(length)
    if rows == columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if rows < least_rows:
        raise InvalidArgumentError("The number of rows is too small.")
    if columns < least_columns:
        raise InvalidArgumentError("The number of columns is too small.")
    if rows != least_rows and columns != least_columns:
        raise InvalidArgumentError(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal."
        )
    return rows, columns


def alignment(attrs: Any) -> str:  # the decoded attrs of a node
    """The `align` attr as text; ops before V3 push everything to the left."""
    value = attrs.get("align", b"LEFT_LEFT")
    return str(value.decode())


@shape_fn("MatrixDiag", "BatchMatrixDiag")
def matrix_diag(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape with its last size repeated."""
    source = with_rank_at_least(c.inputs[0], 1)
    return (None if source is None else (*source, source[-1]),)


@shape_fn("MatrixDiagPart", "BatchMatrixDiagPart")
def matrix_diag_part(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape with the smaller of the last two sizes in their place."""
    source = with_rank_at_least(c.inputs[0], 2)
    if source is None:
        return (None,)
    rows, columns = source[-2:]
    return ((*source[:-2], None if rows is None or columns is None else min(rows, columns)),)


@shape_fn("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the matrices, merged with what the diagonals require of it."""
    source, diagonals = with_rank_at_least(c.inputs[0], 2), with_rank_at_least(c.inputs[1], 1)
    values = [0] if len(c.inputs) == 2 else integers(c, 2)
    if values is None:
        if source is not None:
            with_rank_at_least(diagonals, len(source) - 1)
    else:
        lower, upper = values[0], values[-1]
        if lower > upper:
            raise InvalidArgumentError("lower_diag_index is greater than upper_diag_index")
        if source is not None:
            with_rank(diagonals, len(source) - (lower == upper))
            rows, columns = source[-2:]
            if rows is not None and columns is not None:
                check_inside(DiagonalBand(lower, upper), rows, columns, "")
    if diagonals is None or (source is not None and None not in source):
        return (source,)
    # TensorFlow takes all but the last axis for outer ones, whether or not there is an axis of diagonals.
    return (merge(source, (*diagonals[:-1], None, None)),)


shape_fn("MatrixBandPart", "BatchMatrixBandPart")(unchanged)


@shape_fn("MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part_band(c: ShapeContext) -> Sequence[Shape]:
    """The last two sizes become the number of diagonals (dropped if it is one) and the length of the longest."""
    source, values = with_rank_at_least(c.inputs[0], 2), integers(c, 1)
    with_rank(c.inputs[2], 0)
    if source is None or values is None:
        return (None,)
    band = band_of(values)
    rows, columns = source[-2:]
    longest = None
    if rows is not None and columns is not None:
        check_inside(band, rows, columns)
        longest = band.longest(rows, columns)
    return ((*source[:-2], *([band.count] if band.count > 1 else []), longest),)


@shape_fn("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_band(c: ShapeContext) -> Sequence[Shape]:
    """The last two sizes are those that the inputs ask for, or the smallest that hold the diagonals."""
    source, values = with_rank_at_least(c.inputs[0], 1), integers(c, 1)
    for i in (2, 3, 4):
        with_rank(c.inputs[i], 0)
    rows, columns = integer(c, 2), integer(c, 3)
    if source is None or values is None:
        return (None,)
    band = band_of(values)
    outer = source[: -2 if band.count > 1 else -1]
    if rows is None or columns is None or source[-1] is None:
        return ((*outer, None, None),)
    if band.count > 1:
        merge_dims(source[-2], band.count)
    return ((*outer, *matrix_size(band, source[-1], rows, columns)),)


@shape_fn("Diag")
def diag(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape twice."""
    source = with_rank_at_least(c.inputs[0], 1)
    return (None if source is None else (*source, *source),)


@shape_fn("DiagPart")
def diag_part(c: ShapeContext) -> Sequence[Shape]:
    """Half of the input's shape: the halves are merged."""
    source = c.inputs[0]
    if source is None:
        return (None,)
    if len(source) % 2 or not source:
        raise InvalidArgumentError(f"Input must have even and non-zero rank, input rank is {len(source)}")
    half = len(source) // 2
    return (tuple(merge_dims(a, b) for a, b in zip(source[:half], source[half:], strict=True)),)
