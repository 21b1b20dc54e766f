"""Kernels that put slices at given indices of a tensor, and combine slices with one index.

Slices are combined in the order of their indices, so of several updates the last counts.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..registry import Construction, Kernel, kernel
from .combining import combine_rows
from .gather import bad_tuples, flat_places, has_bad_tuple, refuse_tuple
from .indices import sizes_of
from .slicing import empty_of

_COMBINE: dict[str, np.ufunc | None] = {
    "TensorScatterAdd": np.add,
    "TensorScatterSub": np.subtract,
    "TensorScatterMax": np.maximum,
    "TensorScatterMin": np.minimum,
    "TensorScatterUpdate": None,
}


def _scattered(target: Array, indices: Array, updates: Array, combine: np.ufunc | None, ignore: bool) -> Array:
    """`target`, contiguous and changed in place by the slices; index tuples out of range raise, or are ignored.

    Of a vector of indices, which no op documents, TensorFlow takes the first as an index of the first axis.
    """
    _check_listed(target.shape, indices, updates)
    if indices.ndim == 1:
        indices, updates = indices[:1, None], updates[:1]
    depth = indices.shape[-1]
    sizes = target.shape[:depth]
    if not ignore:
        refuse_tuple(indices, sizes, lambda t: f"{t} does not index into shape {shape_text(target.shape)}")
    if updates.size == 0:
        return target
    rows = (prod(sizes), *target.shape[depth:])
    places = flat_places(indices, sizes).reshape(-1)
    slices = updates.reshape(places.size, *rows[1:])
    if ignore and has_bad_tuple(indices, sizes):
        is_good = ~bad_tuples(indices, sizes).reshape(-1)
        places, slices = places[is_good], slices[is_good]
    if combine is None:
        target.reshape(rows)[places] = slices
    else:
        combine_rows(combine, target, places, slices)
    return target


def _check_ranks(indices: Array, updates: Array) -> None:
    for name, x in (("Indices", indices), ("Updates", updates)):
        if x.ndim == 0:
            raise InvalidArgumentError(f"{name} shape must have rank at least one. Found:{shape_text(x.shape)}")


def _check_filled(room: int, indices: Array, updates: Array, *, of_shape: bool = False) -> None:
    """InvalidArgumentError if indices or updates have elements, but not all of tensor, indices and updates do."""
    if (indices.size or updates.size) and not (room and indices.size and updates.size):
        what = " shape" if of_shape else f".  indices shape: {shape_text(indices.shape)}"
        raise InvalidArgumentError(f"Indices and updates specified for empty output{what}")


def _check_slices(shape: tuple[int, ...], indices: Array, updates: Array) -> None:
    """InvalidArgumentError unless `updates` has one slice of a tensor of `shape` for each index tuple."""
    batch, depth = indices.ndim - 1, indices.shape[-1]
    if updates.shape[:batch] != indices.shape[:-1]:
        raise InvalidArgumentError(
            f"Dimensions [0,{batch}) of indices[shape={shape_text(indices.shape)}] must match "
            f"dimensions [0,{batch}) of updates[shape={shape_text(updates.shape)}]"
        )
    if depth > len(shape) or updates.shape[batch:] != shape[depth:]:
        raise InvalidArgumentError(
            f"Dimensions [{depth},{len(shape)}) of input[shape={shape_text(shape)}] must match "
            f"dimensions [{batch},{updates.ndim}) of updates[shape={shape_text(updates.shape)}]"
        )


def _check_listed(shape: tuple[int, ...], indices: Array, updates: Array) -> None:
    """The checks that all kernels make, after those of their op."""
    batch, depth = (indices.ndim - 1, indices.shape[-1]) if indices.ndim > 1 else (1, 1)
    for i in range(batch):
        size = updates.shape[i] if i < updates.ndim else 1
        if size != indices.shape[i]:
            raise InvalidArgumentError(
                f"Dimensions [0,{batch}) of indices[shape={shape_text(indices.shape)}] = {indices.shape[i]} must match "
                f"dimensions [0,{batch}) of updates[shape={shape_text(updates.shape)}] = {size}"
            )
    if depth > len(shape) or updates.shape[batch:] != shape[depth:]:
        raise InvalidArgumentError(
            f"Dimensions [{depth},{len(shape)}) of input[shape={shape_text(shape)}] must match "
            f"dimensions [{depth},{updates.ndim}) of updates[shape={shape_text(updates.shape)}]"
        )
    if depth == 0:
        raise InvalidArgumentError(
            "Only indices.shape[-1] values between 1 and 5 are currently supported.  Requested rank: 0"
        )


def _check_tensor_slices(shape: tuple[int, ...], indices: Array, updates: Array) -> None:
    """As `_check_slices`, in the words of the TensorScatter ops."""
    batch, depth = indices.ndim - 1, indices.shape[-1]
    if updates.shape[:batch] != indices.shape[:-1]:
        raise InvalidArgumentError(
            "Outer dimensions of indices and update must match. "
            f"Indices shape: {shape_text(indices.shape)}, updates shape:{shape_text(updates.shape)}"
        )
    inner = len(shape) - depth
    if updates.ndim - batch != inner:
        raise InvalidArgumentError(
            "Inner dimensions of output shape must match inner dimensions of updates shape. "
            f"Output: {shape_text(shape)} updates: {shape_text(updates.shape)}"
        )
    if updates.shape[batch:] != shape[depth:]:
        raise InvalidArgumentError(
            f"The inner {inner} dimensions of output.shape={shape_text(shape)} must match "
            f"the inner {inner} dimensions of updates.shape={shape_text(updates.shape)}"
        )


def _ignores(node: Construction) -> bool:
    return bool(node.attrs.get("bad_indices_policy", b"") == b"IGNORE")


@kernel("ScatterNd")
def scatter_nd(node: Construction) -> Kernel:
    """A tensor of the given shape: the sum of all slices at their places, zero elsewhere."""
    ignore = _ignores(node)

    def run(indices: Array, updates: Array, shape: Array) -> Array:
        _check_ranks(indices, updates)
        sizes = tuple(sizes_of(shape))
        _check_filled(len(sizes), indices, updates, of_shape=True)
        _check_filled(prod(sizes), indices, updates)
        _check_slices(sizes, indices, updates)
        if not sizes:
            raise InvalidArgumentError("Output must be at least 1-D, got shape: []")
        return _scattered(empty_of(sizes, updates.dtype), indices, updates, np.add, ignore)

    return run


@kernel("ScatterNdNonAliasingAdd")
def scatter_nd_non_aliasing_add(node: Construction) -> Kernel:
    """A copy of the tensor with the slices added to it."""
    ignore = _ignores(node)

    def run(x: Array, indices: Array, updates: Array) -> Array:
        _check_filled(x.size, indices, updates)
        _check_ranks(indices, updates)
        return _scattered(np.array(x, order="C"), indices, updates, np.add, ignore)

    return run


@kernel(*_COMBINE)
def tensor_scatter(node: Construction) -> Kernel:
    """A copy of the tensor with the slices combined into it."""
    combine, ignore = _COMBINE[node.op], _ignores(node)

    def run(x: Array, indices: Array, updates: Array) -> Array:
        _check_ranks(indices, updates)
        _check_filled(x.size, indices, updates, of_shape=True)
        _check_tensor_slices(x.shape, indices, updates)
        return _scattered(np.array(x, order="C"), indices, updates, combine, ignore)

    return run
