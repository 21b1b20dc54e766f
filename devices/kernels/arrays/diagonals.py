"""Kernels that read, write and mask the diagonals of matrices, which are the last two axes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.arrays.diagonals_shapes import DiagonalBand, alignment, band_of, matrix_size
from ..checks import require, scalar_of
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel, simple

_MAIN: Array = np.array(0, np.int32)
_FEW = 1 << 12  # elements of a matrix, of which those in a band are worth remembering


def _band(k: Array, matrix: tuple[int, int] | None = None, end: str = ".") -> DiagonalBand:
    if k.ndim > 1:
        raise InvalidArgumentError(f"diag_index must be a scalar or vector, received shape: {shape_text(k.shape)}")
    return _band_of(tuple(k.reshape(-1).tolist()), matrix, end)


@lru_cache(1 << 8)
def _band_of(values: tuple[int, ...], matrix: tuple[int, int] | None, end: str) -> DiagonalBand:
    return band_of(values, matrix, end)


def _check_matrix(x: Array) -> None:
    if x.ndim < 2:
        raise InvalidArgumentError(f"input must be at least 2-dim, received shape: {shape_text(x.shape)}")


def _read(x: Array, band: DiagonalBand, align: str, padding: Array) -> Array:
    if band.count == 1:
        return x.diagonal(band.lower, -2, -1).copy()
    rows, columns = x.shape[-2:]
    diagonals = np.full((*x.shape[:-2], band.count, band.longest(rows, columns)), padding, x.dtype)
    for place, (number, span) in enumerate(band.spans(rows, columns, align)):
        diagonals[..., place, span] = x.diagonal(number, -2, -1)
    return diagonals


def _write(matrices: Array, diagonals: Array, band: DiagonalBand, align: str) -> Array:
    """The matrices, which are contiguous, with the diagonals written into them.

    From an element of a diagonal to the next it is a row and one element further.
    """
    rows, columns = matrices.shape[-2:]
    elements = matrices.reshape(*matrices.shape[:-2], rows * columns)
    if band.count == 1:
        diagonals = diagonals[..., None, :]
    for place, (number, span) in enumerate(band.spans(rows, columns, align)):
        first, step = (number if number > 0 else -number * columns), columns + 1
        stop = first + step * (span.stop - span.start)
        elements[..., first:stop:step] = diagonals[..., place, span]
    return matrices


@kernel("MatrixDiagPart", "BatchMatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part(node: Construction) -> Kernel:
    """The diagonals of a band, short ones padded; a single diagonal has no axis of its own."""
    align = alignment(node.attrs)

    def run(x: Array, k: Array = _MAIN, padding: Array | None = None) -> Array:
        _check_matrix(x)
        band = _band(k, (x.shape[-2], x.shape[-1]))
        if padding is not None:
            require(padding.size == 1, f"padding_value must have one element, not {padding.size}")
        return _read(x, band, align, x.dtype.type(0) if padding is None else padding)

    return run


@kernel("MatrixDiag", "BatchMatrixDiag")
def matrix_diag(node: Construction) -> Kernel:
    """Square matrices with the given main diagonals, zero elsewhere."""

    def run(diagonals: Array) -> Array:
        if diagonals.ndim == 0:
            raise InvalidArgumentError(f"diagonal must be at least 1-dim, received shape: {shape_text(())}")
        matrices = np.zeros(output_shape((*diagonals.shape, diagonals.shape[-1]), diagonals.dtype), diagonals.dtype)
        return _write(matrices, diagonals, DiagonalBand(0, 0), "LEFT_LEFT")

    return run


@kernel("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_band(node: Construction) -> Kernel:
    """Matrices with the given diagonals in a band, the padding value elsewhere."""
    align = alignment(node.attrs)

    def run(diagonals: Array, k: Array, num_rows: Array, num_cols: Array, padding: Array) -> Array:
        if diagonals.ndim == 0:
            raise InvalidArgumentError(f"diagonal must be at least 1-dim, received shape: {shape_text(())}")
        rows, columns = scalar_of(num_rows, "num_rows"), scalar_of(num_cols, "num_cols")
        if padding.ndim != 0:
            raise InvalidArgumentError(f"padding_value must be a scalar, not shape {shape_text(padding.shape)}")
        band = _band(k)
        if band.count > 1 and (diagonals.ndim < 2 or diagonals.shape[-2] != band.count):
            raise InvalidArgumentError(
                "The number of diagonals provided in the input does not match the lower_diag_index and "
                "upper_diag_index range."
            )
        size = matrix_size(band, diagonals.shape[-1], rows, columns)
        outer = diagonals.shape[: -2 if band.count > 1 else -1]
        matrices = np.empty(output_shape((*outer, *size), diagonals.dtype), diagonals.dtype)
        matrices.fill(padding)
        return _write(matrices, diagonals, band, align)

    return run


@kernel("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(node: Construction) -> Kernel:
    """A copy of the matrices with other elements on the diagonals of a band."""
    align = alignment(node.attrs)

    def run(x: Array, diagonals: Array, k: Array = _MAIN) -> Array:
        _check_matrix(x)
        if diagonals.ndim == 0:
            raise InvalidArgumentError(f"diagonal must be at least 1-dim, received shape: {shape_text(())}")
        band = _band(k, (x.shape[-2], x.shape[-1]), "")
        if band.count > 1 and diagonals.ndim < x.ndim - 1:
            raise InvalidArgumentError(
                "Diagonal tensor rank must be large enough to contain a diagonal-count dimension. "
                f"Input rank: {x.ndim}, Expected diagonal rank >= {x.ndim - 1}, "
                f"Received diagonal rank: {diagonals.ndim}"
            )
        if band.count > 1 and diagonals.shape[x.ndim - 2] != band.count:
            raise InvalidArgumentError(
                "The number of diagonals provided in `diag` is not consistent with `lower_diag_index` and "
                "`upper_diag_index`"
            )
        several = (band.count,) if band.count > 1 else ()
        expected = (*x.shape[:-2], *several, band.longest(*x.shape[-2:]))
        if diagonals.shape != expected:
            raise InvalidArgumentError(
                "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal "
                "to the longests diagonal in range [lower_diag_index:upper_diag_index].\n"
                f"Input shape: {shape_text(x.shape)}\nDiagonal shape: {shape_text(diagonals.shape)}\n"
                f"Expected diagonal shape: {shape_text(expected)}"
            )
        return _write(np.array(x, order="C"), diagonals, band, align)

    return run


def matrix_band_part(x: Array, num_lower: Array, num_upper: Array) -> Array:
    """The matrices with zeros outside a band; a negative number of diagonals keeps that whole triangle."""
    _check_matrix(x)
    rows, columns = x.shape[-2:]
    for name, value in (("num_lower", num_lower), ("num_upper", num_upper)):
        if value.ndim:
            raise InvalidArgumentError(f"{name} must be scalar, got shape {shape_text(value.shape)}")
    below, above = int(num_lower), int(num_upper)
    for name, count, most, what in (("num_lower", below, rows, "rows"), ("num_upper", above, columns, "columns")):
        if count > most:
            raise InvalidArgumentError(
                f"{name} must be negative or less or equal to number of {what} ({most}) got: {count}"
            )
    inside = (_few_in_band if rows * columns <= _FEW else _in_band)(rows, columns, below, above)
    return np.where(inside, x, x.dtype.type(0))


def _in_band(rows: int, columns: int, below: int, above: int) -> Array:
    """Which elements of a matrix are in a band, whose lower or upper end is that of the matrix if it is negative."""
    distance = np.arange(columns) - np.arange(rows)[:, None]
    inside = np.ones_like(distance, np.bool_)
    if below >= 0:
        inside &= -distance <= below
    if above >= 0:
        inside &= distance <= above
    return inside


_few_in_band = lru_cache(64)(_in_band)


simple("MatrixBandPart", matrix_band_part)
simple("BatchMatrixBandPart", matrix_band_part)


def diag(x: Array) -> Array:
    """An array of twice the rank with the input on its diagonal, zero elsewhere."""
    if x.ndim == 0:
        raise InvalidArgumentError("Input must be at least rank 1, got 0")
    matrix = np.zeros(output_shape((x.size, x.size), x.dtype), x.dtype)
    np.fill_diagonal(matrix, x.reshape(-1))
    return matrix.reshape(x.shape + x.shape)


def diag_part(x: Array) -> Array:
    """The elements whose first half of coordinates equals the second half."""
    if x.ndim % 2 or x.ndim == 0:
        raise InvalidArgumentError(
            f"The rank of the tensor should be even and positive, got shape {shape_text(x.shape)}"
        )
    half = x.ndim // 2
    for i in range(half):
        if x.shape[i] != x.shape[i + half]:
            raise InvalidArgumentError(
                f"Invalid shape {shape_text(x.shape)}: dimensions {i} and {i + half} do not match."
            )
    size = int(np.prod(x.shape[:half]))
    return x.reshape(size, size).diagonal().reshape(x.shape[:half])


simple("Diag", diag)
simple("DiagPart", diag_part)
