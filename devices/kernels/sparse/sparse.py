"""Kernels from sparse tensors to dense ones: conversion, products, softmax.

A sparse tensor is (index tuples, values, shape); an index tuple outside the shape is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..arrays.combining import combine_rows
from ..arrays.gather import bad_tuples, flat_places, has_bad_tuple
from ..arrays.indices import is_any_outside
from ..checks import require
from ..half_types import widen
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel, simple

SparseParts = tuple[Array, Array, Array]
"""indices, values and shape"""


def tuple_text(row: Array) -> str:
    """An index tuple as errors show it: [1,2]."""
    return shape_text(tuple(row.tolist()))


def check_ranks(indices: Array, values: Array, shape: Array) -> None:
    """InvalidArgumentError unless the three are a matrix and two vectors that fit each other."""
    if np.ndim(indices) != 2:
        raise InvalidArgumentError(f"Input indices should be a matrix but received shape: {shape_text(indices.shape)}")
    if np.ndim(values) != 1:
        raise InvalidArgumentError(
            f"Input values should be a vector but received shape: {shape_text(np.shape(values))}"
        )
    if np.ndim(shape) != 1:
        raise InvalidArgumentError(f"Input shape should be a vector but received shape: {shape_text(shape.shape)}")
    rows, columns = indices.shape
    if rows != len(values):
        raise InvalidArgumentError(f"Number of elements in indices ({rows}) and values ({len(values)}) do not match")
    if columns != shape.size:
        raise InvalidArgumentError(
            f"Number of dimensions must match second dimension of indices. Got {shape.size} dimensions, indices shape: "
            f"{shape_text(indices.shape)}"
        )


def check_sparse(indices: Array, values: Array, shape: Array) -> None:
    """InvalidArgumentError unless the three are the parts of a sparse tensor; whether indices fit is not looked at."""
    if shape.ndim != 1:
        raise InvalidArgumentError(f"Input shape should be a vector but received shape {shape_text(shape.shape)}")
    check_entries(indices, values, shape.tolist())


def check_entries(indices: Array, values: Array, shape: Sequence[int]) -> None:
    """InvalidArgumentError unless there is an index tuple of `shape` for each value."""
    if values.ndim != 1:
        raise InvalidArgumentError(f"vals must be a vec, but got: {shape_text(values.shape)}")
    if not indices.ndim or len(indices) != len(values):
        counts = f"(indices = {len(indices) if indices.ndim else 1}, values = {len(values)})"
        raise InvalidArgumentError(f"indices and values rows (indexing dimension) must match. {counts}")
    if indices.ndim != 2:
        raise InvalidArgumentError(f"indices must be a matrix, but got: {shape_text(indices.shape)}")
    for size in shape:
        require(size >= 0, f"Expected shape dimensions to be non-negative, got {size}")
    if indices.shape[1] != len(shape):
        columns = f"Got {len(shape)} dimensions, indices shape: {shape_text(indices.shape)}"
        raise InvalidArgumentError(f"Number of dimensions must match second dimension of indices. {columns}")


def ordered_places(indices: Array, shape: tuple[int, ...]) -> Array:
    """The row-major positions of the tuples.

    InvalidArgumentError unless these are inside `shape`, in row-major order, and all different.
    """
    if has_bad_tuple(indices, shape):
        first = int(np.flatnonzero(bad_tuples(indices, shape))[0])
        raise InvalidArgumentError(
            f"indices[{first}] = {tuple_text(indices[first])} is out of bounds: need 0 <= index < {shape_text(shape)}"
        )
    places = flat_places(indices, shape)
    steps = places[1:] - places[:-1]
    if np.logical_and.reduce(steps > 0):
        return places
    first = int(np.flatnonzero(steps <= 0)[0])
    where = f"indices[{first + 1}] = {tuple_text(indices[first + 1])}"
    if steps[first] == 0:
        raise InvalidArgumentError(f"{where} is repeated")
    raise InvalidArgumentError(
        f"{where} is out of order. Many sparse ops require sorted indices.\n"
        "    Use `tf.sparse.reorder` to create a correctly ordered copy."
    )


@kernel("SparseToDense")
def sparse_to_dense(node: Construction) -> Kernel:
    """The values at their indices, the default elsewhere; indices may be one number, a vector, or tuples."""
    validate = node.attrs["validate_indices"]

    def run(sparse_indices: Array, sizes: Array, values: Array, default: Array) -> Array:
        if sparse_indices.ndim > 2:
            raise InvalidArgumentError(
                "sparse_indices should be a scalar, vector, or matrix, got shape " + shape_text(sparse_indices.shape)
            )
        indices = sparse_indices if sparse_indices.ndim == 2 else sparse_indices.reshape(-1, 1)
        if sizes.ndim != 1:
            raise InvalidArgumentError(f"output_shape should be a vector, got shape {shape_text(sizes.shape)}")
        shape = tuple(sizes.tolist())
        for size in shape:
            require(size >= 0, f"Dimension {size} must be >= 0")
        output_shape(shape, values.dtype)
        _check_parts(indices, shape, values, default)
        if validate:
            places = ordered_places(indices, shape)
        elif has_bad_tuple(indices, shape):
            raise InvalidArgumentError(f"Indices are not valid (out of bounds).  Shape: {shape_text(shape)}")
        else:
            places = flat_places(indices, shape)
        result = np.empty(shape, values.dtype)
        result.fill(default.item() if result.dtype.kind == "O" else default)
        result.reshape(-1)[places] = values
        return result

    return run


def _check_parts(indices: Array, shape: tuple[int, ...], values: Array, default: Array) -> None:
    if len(shape) != indices.shape[1]:
        raise InvalidArgumentError(
            f"output_shape has incorrect number of elements: {len(shape)} should be: {indices.shape[1]}"
        )
    if values.ndim and values.shape != (indices.shape[0],):
        raise InvalidArgumentError(
            f"sparse_values has incorrect shape {shape_text(values.shape)}, should be [] or [{indices.shape[0]}]"
        )
    if default.ndim:
        raise InvalidArgumentError("default_value should be a scalar.")


@kernel("SparseTensorDenseMatMul")
def sparse_tensor_dense_mat_mul(node: Construction) -> Kernel:
    """The product of a sparse and a dense matrix, each conjugated and transposed where the attrs say so."""
    adjoint_a, adjoint_b = node.attrs["adjoint_a"], node.attrs["adjoint_b"]

    def run(indices: Array, values: Array, shape: Array, b: Array) -> Array:
        if shape.shape != (2,) or b.ndim != 2:
            raise InvalidArgumentError("Tensor 'a_shape' must have 2 elements and tensor 'b' must be a matrix")
        check_sparse(indices, values, shape)
        right = b.conj().T if adjoint_b and b.dtype.kind == "c" else b.T if adjoint_b else b
        rows, columns = shape.tolist()[::-1] if adjoint_a else shape.tolist()
        row, column = (indices[:, 1], indices[:, 0]) if adjoint_a else (indices[:, 0], indices[:, 1])
        if columns != right.shape[0]:
            raise InvalidArgumentError(
                f"Cannot multiply A and B because inner dimension does not match: {columns} vs. {right.shape[0]}.  "
                f"Did you forget a transpose?  Dimensions of A: [{rows}, {columns}).  "
                f"Dimensions of B: {shape_text(b.shape)}"
            )
        _check_entries(column, columns, "k", 0 if adjoint_a else 1)
        _check_entries(row, rows, "m", 1 if adjoint_a else 0)
        factors = values.conj() if adjoint_a and values.dtype.kind == "c" else values
        result = widen(np.zeros(output_shape((rows, right.shape[1]), b.dtype), b.dtype))
        combine_rows(np.add, result, row, widen(factors)[:, None] * widen(right)[column])
        return result.astype(b.dtype, copy=False)

    return run


def _check_entries(values: Array, limit: int, name: str, column: int) -> None:
    if is_any_outside(values, limit):
        first = int(np.flatnonzero((values < 0) | (values >= limit))[0])
        raise InvalidArgumentError(f"{name} ({values[first]}) from index[{first},{column}] out of bounds (>={limit})")


def _groups(rows: Array) -> tuple[Array, int]:
    """A number for each row, the same for equal ones, and how many there are; sorted rows need no search."""
    if np.logical_and.reduce(rows[1:] >= rows[:-1]):
        group = np.add.accumulate(np.not_equal(rows[1:], rows[:-1]), dtype=np.intp)
        return np.concatenate([np.zeros(1, np.intp), group]), int(group[-1]) + 1 if len(group) else 1
    found, group = np.unique(rows, return_inverse=True)
    return group.reshape(-1), len(found)


def sparse_softmax(indices: Array, values: Array, shape: Array) -> Array:
    """Softmax over the values that share all but their last coordinate; missing elements count as -infinity."""
    check_ranks(indices, values, shape)
    if shape.size < 2:
        raise InvalidArgumentError(f"Input should have rank >= 2, got: {shape.size}")
    if indices.shape[0] == 0:
        return values
    rows = flat_places(indices[:, :-1], tuple(shape.tolist()[:-1]))
    group, count = _groups(rows)
    wide = widen(values)
    top = np.full(count, -np.inf, wide.dtype)
    np.maximum.at(top, group, wide)
    exponentials = np.exp(wide - top[group])
    sums = np.zeros_like(top)
    np.add.at(sums, group, exponentials)
    return np.asarray((exponentials / sums[group]).astype(values.dtype, copy=False))


simple("SparseSoftmax", sparse_softmax)


def sparse_fill_empty_rows_grad(reverse_index_map: Array, grad_values: Array) -> tuple[Array, Array]:
    """The gradients of the old values, and the summed gradient of all values that were filled in."""
    for name, part in (("reverse_index_map", reverse_index_map), ("grad_values", grad_values)):
        if part.ndim != 1:
            raise InvalidArgumentError(f"{name} must be a vector, saw: {shape_text(part.shape)}")
    count = len(grad_values)
    for place in reverse_index_map[(reverse_index_map < 0) | (reverse_index_map >= count)].tolist()[:1]:
        raise InvalidArgumentError(f"Elements in reverse index must be in [0, {count}) but got {place}")
    filled = np.ones(grad_values.shape, np.bool_)
    filled[reverse_index_map] = False
    return grad_values[reverse_index_map], np.asarray(grad_values[filled].sum(dtype=grad_values.dtype))


simple("SparseFillEmptyRowsGrad", sparse_fill_empty_rows_grad)
simple("RaggedFillEmptyRowsGrad", sparse_fill_empty_rows_grad)
