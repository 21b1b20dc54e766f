"""Kernels of two tensors, element by element, of which at least one is sparse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..arrays.gather import bad_tuples, flat_places, has_bad_tuple
from ..checks import require
from ..registry import Kernel, simple
from .sparse import check_ranks


def _spaced(shape: Array | tuple[int, ...]) -> str:
    return " ".join(map(str, list(shape)))


def dense_at(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    """The elements of a dense array (broadcast to the shape) at the indices of the values."""
    check_ranks(indices, values, shape)
    try:
        wide = np.broadcast_to(dense, tuple(shape.tolist()))
    except ValueError:
        raise InvalidArgumentError(
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            f"[{','.join(map(str, shape.tolist()))}] vs. {shape_text(dense.shape)}"
        ) from None
    outside = has_bad_tuple(indices, wide.shape)
    require(not outside, "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape")
    picked: Array = wide[tuple(indices.T)]
    return picked


def sparse_dense_cwise_div(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    """The values divided by the elements at their indices; integers towards zero."""
    divisor = dense_at(indices, values, shape, dense)
    if values.dtype.kind not in "iu":
        return np.asarray(values / divisor)
    if not divisor.all():
        raise InvalidArgumentError("Integer division by zero")
    return np.asarray((values - np.fmod(values, divisor)) // divisor)


def sparse_dense_cwise_add(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    """The values plus the elements at their indices."""
    return np.asarray(values + dense_at(indices, values, shape, dense))


def sparse_dense_cwise_mul(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    """The values times the elements at their indices."""
    return np.asarray(values * dense_at(indices, values, shape, dense))


simple("SparseDenseCwiseAdd", sparse_dense_cwise_add)
simple("SparseDenseCwiseMul", sparse_dense_cwise_mul)
simple("SparseDenseCwiseDiv", sparse_dense_cwise_div)


def sparse_tensor_dense_add(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    """The dense tensor with the values added at their indices, which may repeat."""
    if np.ndim(shape) != 1:
        raise InvalidArgumentError(f"Input a_shape should be a vector but received shape {shape_text(shape.shape)}")
    sizes = tuple(shape.tolist())
    if len(sizes) != dense.ndim:
        raise InvalidArgumentError(f"Two operands have different ranks; received: {len(sizes)} and {dense.ndim}")
    if np.ndim(indices) != 2:
        raise InvalidArgumentError(f"Input a_indices should be a matrix but received shape {shape_text(indices.shape)}")
    if np.ndim(values) != 1:
        raise InvalidArgumentError(f"Input a_values should be a vector but received shape {shape_text(values.shape)}")
    if len(values) != len(indices):
        raise InvalidArgumentError(f"Dimensions {len(indices)} and {len(values)} are not compatible")
    if indices.shape[1] != len(sizes):
        raise InvalidArgumentError(f"Dimensions {indices.shape[1]} and {len(sizes)} are not compatible")
    for axis, (sparse_size, dense_size) in enumerate(zip(sizes, dense.shape, strict=True)):
        require(
            sparse_size == dense_size,
            f"Dimension {axis} does not equal (no broadcasting is supported): sparse side {sparse_size} vs dense side "
            f"{dense_size}",
        )
    bad = bad_tuples(indices, sizes)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        axis = int(np.flatnonzero((indices[row] < 0) | (indices[row] >= np.array(sizes)))[0])
        raise InvalidArgumentError(
            f"Sparse tensor has an invalid index on dimension {axis}: a_indices({row},{axis}) = {indices[row, axis]}, "
            f"dense tensor shape: {_spaced(sizes)}"
        )
    result = dense.copy()
    np.add.at(result.reshape(-1), flat_places(indices, sizes), values)
    return result


simple("SparseTensorDenseAdd", sparse_tensor_dense_add)


def _check_operands(parts: tuple[Array, ...]) -> None:
    a_indices, a_values, a_shape, b_indices, b_values, b_shape = parts
    for indices, values, shape in ((a_indices, a_values, a_shape), (b_indices, b_values, b_shape)):
        check_ranks(indices, values, shape)
    if len(a_shape) != len(b_shape):
        raise InvalidArgumentError(
            f"Operands do not have the same ranks; got shapes: {_spaced(a_shape)} and {_spaced(b_shape)}"
        )
    for axis, (x, y) in enumerate(zip(a_shape.tolist(), b_shape.tolist(), strict=True)):
        require(x == y, f"Operands' shapes do not match: got {x} and {y} for dimension {axis}")


def _between(choose: Callable[[Array, Array], Array]) -> Kernel:
    """The op on all indices that occur in one of two sparse tensors; a value that lacks is 0."""

    def run(*parts: Array) -> tuple[Array, Array]:
        _check_operands(parts)
        a_indices, a_values, shape, b_indices, b_values, _ = parts
        sizes = tuple(shape.tolist())
        both = np.concatenate([a_indices, b_indices])
        places, first, where = np.unique(flat_places(both, sizes), return_index=True, return_inverse=True)
        operands = np.zeros((2, len(places)), a_values.dtype)
        operands[0, where[: len(a_values)]] = a_values
        operands[1, where[len(a_values) :]] = b_values
        return both[first], choose(operands[0], operands[1])

    return run


simple("SparseSparseMaximum", _between(lambda a, b: np.where(a < b, b, a)))
simple("SparseSparseMinimum", _between(lambda a, b: np.where(b < a, b, a)))
