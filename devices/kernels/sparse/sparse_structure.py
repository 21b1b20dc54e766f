"""Kernels from sparse tensors to sparse tensors: adding, ordering, reshaping, slicing, concatenating, filling rows.

Inputs in row-major order give results in row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod

import numpy as np

from ....errors import InternalError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.arrays import distinct
from ....graph.dtypes import Array, numpy_dtype
from ..arrays.gather import flat_places
from ..arrays.indices import is_any_outside
from ..checks import require
from ..output_size import MAX_ELEMENTS, output_shape
from ..registry import Construction, Kernel, kernel, simple
from .sparse import SparseParts, check_entries, check_ranks, check_sparse


def _tuples(places: Array, shape: Sequence[int]) -> Array:
    """The index tuples of row-major positions; the inverse of `flat_places`."""
    result = np.empty((places.size, len(shape)), np.int64)
    for axis in range(len(shape) - 1, -1, -1):
        places, result[:, axis] = np.divmod(places, max(shape[axis], 1))
    return result


def sparse_reorder(indices: Array, values: Array, shape: Array) -> tuple[Array, Array]:
    """Tuples and values in row-major order."""
    check_ranks(indices, values, shape)
    order = np.lexsort(indices.T[::-1]) if indices.shape[1] else np.arange(values.size)
    return indices[order], values[order]


simple("SparseReorder", sparse_reorder)


def sparse_add(*inputs: Array) -> SparseParts:
    """The sum of two sparse tensors; sums of elements that both have are dropped if below the threshold."""
    a_indices, a_values, a_shape, b_indices, b_values, b_shape, threshold = inputs
    check_ranks(a_indices, a_values, a_shape)
    check_ranks(b_indices, b_values, b_shape)
    if threshold.ndim:
        raise InvalidArgumentError(f"The magnitude threshold must be a scalar: got shape {shape_text(threshold.shape)}")
    if a_shape.size != b_shape.size:
        raise InvalidArgumentError(
            f"Operands do not have the same ranks; got shapes: {a_shape.tolist()} and {b_shape.tolist()}"
        )
    for axis, (a, b) in enumerate(zip(a_shape.tolist(), b_shape.tolist(), strict=True)):
        if a != b:
            raise InvalidArgumentError(f"Operands' shapes do not match: got {a} and {b} for dimension {axis}")
    sizes = tuple(a_shape.tolist())
    left, right = flat_places(a_indices, sizes), flat_places(b_indices, sizes)
    places = distinct(np.concatenate((left, right)))
    sums, is_of_one = np.zeros(places.size, a_values.dtype), np.ones((2, places.size), np.bool_)
    for term, (own, values) in enumerate(((left, a_values), (right, b_values))):
        targets = places.searchsorted(own)
        np.add.at(sums, targets, values)
        is_of_one[1 - term, targets] = False
    kept = (np.abs(sums) >= threshold) | is_of_one[0] | is_of_one[1]
    return _tuples(places[kept], sizes), sums[kept], a_shape


simple("SparseAdd", sparse_add)


def _bounds(*indices: Array) -> tuple[int, ...]:
    """The smallest shape that contains all these index tuples."""
    ends = [x.max(axis=0, initial=-1) + 1 for x in indices]
    return tuple(np.max(ends, axis=0).tolist())


def _check_gradient(grad: Array, *indices: Array) -> None:
    """InvalidArgumentError unless these are a gradient for each of the last indices, and matrices of equal width."""
    if grad.ndim != 1:
        raise InvalidArgumentError(
            f"Input backprop_val_grad should be a vector but received shape: {shape_text(grad.shape)}"
        )
    for matrix in indices:
        if matrix.ndim != 2:
            raise InvalidArgumentError(
                f"Input indices should be matrices but received shape: {shape_text(matrix.shape)}"
            )
        require(
            matrix.shape[1] == indices[0].shape[1],
            f"The densified operands should have the same ndims; got {indices[0].shape[1]} and {matrix.shape[1]}",
        )
    if grad.size != len(indices[-1]):
        raise InvalidArgumentError(
            f"# elements of backprop_val_grad and # rows of the indices should match (#nnz of the result): "
            f"got {grad.size} and {len(indices[-1])}"
        )


def sparse_add_grad(grad: Array, a_indices: Array, b_indices: Array, sum_indices: Array) -> tuple[Array, Array]:
    """For each element of the two terms the gradient of its sum; 0 if the sum was dropped."""
    _check_gradient(grad, a_indices, b_indices, sum_indices)
    sizes = _bounds(a_indices, b_indices, sum_indices)
    places = flat_places(sum_indices, sizes)
    order = np.argsort(places, kind="stable")

    def back(indices: Array) -> Array:
        targets = flat_places(indices, sizes)
        present = np.isin(targets, places)
        result = np.zeros(targets.size, grad.dtype)
        result[present] = grad[order[np.searchsorted(places, targets[present], sorter=order)]]
        return result

    return back(a_indices), back(b_indices)


simple("SparseAddGrad", sparse_add_grad)


def sparse_reshape(indices: Array, shape: Array, new_shape: Array) -> tuple[Array, Array]:
    """The same elements, in row-major order, under another shape, one size of which may be -1."""
    if indices.ndim != 2:
        raise InvalidArgumentError(f"Input indices should be a matrix but received shape {shape_text(indices.shape)}")
    for name, sizes in (("Input", shape), ("Target", new_shape)):
        if sizes.ndim != 1:
            raise InvalidArgumentError(f"{name} shape should be a vector but received shape {shape_text(sizes.shape)}")
    require(
        indices.shape[1] == shape.size,
        f"Input tensor rank must match input shape length: {indices.shape[1]} and {shape.size}",
    )
    old, new = shape.tolist(), new_shape.tolist()
    for size in old:
        require(size >= 0, f"Expected shape dimensions to be non-negative, got {size}")
    if prod(old) > MAX_ELEMENTS:
        raise InvalidArgumentError(f"Shape {shape_text(old)} results in overflow when computing number of elements")
    unknown = [i for i, size in enumerate(new) if size == -1]
    if len(unknown) > 1:
        raise InvalidArgumentError(f"only one output dimension may be -1, not both {unknown[0]} and {unknown[1]}")
    for i, size in enumerate(new):
        if size < -1:
            raise InvalidArgumentError(f"size {i} must be non-negative, not {size}")
    dense, known = prod(old), prod(size for size in new if size != -1)
    if unknown:
        new[unknown[0]] = dense // known if known else 0
    if unknown and known * new[unknown[0]] != dense:
        raise InvalidArgumentError(
            f"Input to reshape is a SparseTensor with {dense} dense values, but the requested shape requires a "
            f"multiple of {known}. input_shape={shape_text(old)} output_shape={shape_text(new)}"
        )
    if prod(new) != dense:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {dense} dense values, but the requested shape has {prod(new)}. "
            f"input_shape={shape_text(old)} output_shape={shape_text(new)}"
        )
    return _tuples(flat_places(indices, tuple(old)), new), np.array(new, np.int64)


simple("SparseReshape", sparse_reshape)


def sparse_slice(indices: Array, values: Array, shape: Array, start: Array, size: Array) -> SparseParts:
    """The elements in a box, with coordinates relative to it; the box is cut at the end of the tensor."""
    check_ranks(indices, values, shape)
    for name, x in (("start", start), ("size", size)):
        if x.shape != shape.shape:
            raise InvalidArgumentError(f"Expected {name} to be a vector of length {shape.size} but got length {x.size}")
    stop = np.minimum(start + size, shape)
    inside = np.logical_and.reduce((indices >= start) & (indices < stop), 1)
    return indices[inside] - start, values[inside], np.maximum(stop - start, 0)


simple("SparseSlice", sparse_slice)


def sparse_slice_grad(grad: Array, indices: Array, start: Array, out_indices: Array) -> Array:
    """For each element the gradient of its copy in the slice, or 0; both lists of tuples are in one order."""
    _check_gradient(grad, indices, out_indices)
    if start.ndim != 1:
        raise InvalidArgumentError(f"The input_start should be a vector but received shape {shape_text(start.shape)}")
    require(start.size == indices.shape[1], f"Rank mismatch: {start.size} starts for {indices.shape[1]} axes")
    kept_indices = out_indices + start
    sizes = _bounds(indices, kept_indices)
    result = np.zeros(len(indices), grad.dtype)
    is_kept = np.isin(flat_places(indices, sizes), flat_places(kept_indices, sizes))
    used = np.count_nonzero(is_kept)
    if used != grad.size:
        raise InternalError(
            f"Elements of backprop_val_grad aren't all propagated. Num elements:{grad.size}, used: {used}"
        )
    result[is_kept] = grad
    return result


simple("SparseSliceGrad", sparse_slice_grad)


@kernel("SparseConcat")
def sparse_concat(node: Construction) -> Kernel:
    """Sparse tensors one after the other along an axis, in row-major order."""
    count, axis = node.attrs["N"], node.attrs["concat_dim"]

    def run(*inputs: Array) -> SparseParts:
        indices, values, shapes = (inputs[i * count : (i + 1) * count] for i in range(3))
        for shape in shapes:
            if shape.ndim != 1:
                raise InvalidArgumentError(
                    f"Input shapes should be a vector but received shape {shape_text(shape.shape)}"
                )
        rank = shapes[0].size
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"Concat dimension must be in range [{-rank}, {rank}), got {axis}")
        place = axis % rank
        _check_concat(shapes, place)
        for parts in zip(indices, values, shapes, strict=True):
            check_sparse(*parts)
        lengths = [int(shape[place]) for shape in shapes]
        moved = [x.copy() for x in indices]
        for x, offset in zip(moved, accumulate(lengths[:-1], initial=0), strict=True):
            x[:, place] += offset
        total = shapes[0].copy()
        total[place] = sum(lengths)
        return (*sparse_reorder(np.concatenate(moved), np.concatenate(values), total), total)

    return run


def _check_concat(shapes: Sequence[Array], place: int) -> None:
    for position, shape in enumerate(shapes):
        if shape.size != shapes[0].size:
            raise InvalidArgumentError(
                f"Ranks of all input tensors must match: expected {shapes[0].size} but got {shape.size} "
                f"at position {position}"
            )
        for axis, (expected, actual) in enumerate(zip(shapes[0].tolist(), shape.tolist(), strict=True)):
            if axis != place and expected != actual:
                raise InvalidArgumentError(
                    f"Input shapes must match: expected {expected} for dimension {axis} but got {actual} "
                    f"at position {position}"
                )


@kernel("SparseSplit")
def sparse_split(node: Construction) -> Kernel:
    """Sparse tensors cut along an axis; if the size is not divisible the first parts get one slice more."""
    count = node.attrs["num_split"]

    def run(split_dim: Array, indices: Array, values: Array, shape: Array) -> tuple[Array, ...]:
        if split_dim.ndim != 0:
            raise InvalidArgumentError(f"axis must be one number, got shape {shape_text(split_dim.shape)}")
        check_sparse(indices, values, shape)
        axis = int(split_dim.item())
        if not -shape.size <= axis < shape.size:
            raise InvalidArgumentError(f"Input axis should be in range [{-shape.size}, {shape.size}), got {axis}")
        axis %= shape.size
        length = int(shape[axis])
        if not 1 <= count <= length:
            raise InvalidArgumentError(
                f"Input num_split should be between 1 and the splitting dimension size ({length}), got {count}"
            )
        sizes = [length // count + (i < length % count) for i in range(count)]
        pieces: list[SparseParts] = []
        for first, size in zip(np.cumsum([0, *sizes[:-1]]).tolist(), sizes, strict=True):
            start, box = np.zeros_like(shape), shape.copy()
            start[axis], box[axis] = first, size
            pieces.append(sparse_slice(indices, values, shape, start, box))
        return tuple(piece[k] for k in range(3) for piece in pieces)

    return run


@kernel("SparseFillEmptyRows")
def sparse_fill_empty_rows(node: Construction) -> Kernel:
    """One default element at the start of each empty row; flags of the empty rows, new positions of elements."""
    dtype = numpy_dtype(node.output_types[1])

    def run(indices: Array, values: Array, shape: Array, default: Array) -> tuple[Array, Array, Array, Array]:
        if default.ndim:
            raise InvalidArgumentError(f"default_value must be a scalar, saw: {shape_text(default.shape)}")
        if not (shape.ndim == 1 and shape.size > 0):
            raise InvalidArgumentError(f"dense_shape must be a vector, saw: {shape_text(shape.shape)}")
        check_entries(indices, values, [0] * shape.size)  # sizes may be negative
        rows = int(shape[0])
        _check_rows(indices, rows)
        output_shape((rows, shape.size), indices.dtype)  # there will be an element in each row
        counts = np.bincount(indices[:, 0], minlength=rows) if rows else np.zeros(0, np.int64)
        empty = counts == 0
        numbers = indices[:, 0]
        if not np.logical_or.reduce(empty) and np.logical_and.reduce(numbers[1:] >= numbers[:-1]):
            return indices, values, empty, np.arange(values.size)
        added = np.zeros((int(empty.sum()), shape.size), np.int64)
        added[:, 0] = empty.nonzero()[0]
        fillers = np.empty(added.shape[0], dtype)
        fillers.fill(default.item() if dtype.kind == "O" else default)
        order = np.concatenate([numbers, added[:, 0]]).argsort(kind="stable")
        reverse = np.empty(order.size, np.int64)
        reverse[order] = np.arange(order.size)
        merged = np.concatenate([indices, added])[order]
        return merged, np.concatenate([values, fillers])[order], empty, reverse[: values.size]

    return run


def _check_rows(indices: Array, rows: int) -> None:
    numbers = indices[:, 0]
    if rows == 0 and numbers.size:
        raise InvalidArgumentError(
            f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {numbers.size}"
        )
    if is_any_outside(numbers, rows):
        outside = np.flatnonzero((numbers < 0) | (numbers >= rows))
        raise InvalidArgumentError(f"indices({outside[0]}, 0) is invalid: {numbers[outside[0]]} >= {rows}")
