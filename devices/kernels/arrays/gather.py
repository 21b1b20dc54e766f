"""Kernels that pick elements or slices by index.

Indices are checked before they are used; negative ones are refused, never counted from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ....graph.ops.arrays.strided import IndexEntry
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .indices import is_any_outside

_MOST_KEPT = 256  # rows whose starts are kept from one call to the next


def check_indices(indices: Array, limit: int, what: str = "indices") -> None:
    """InvalidArgumentError naming the first index that is not in [0, limit)."""
    if not is_any_outside(indices, limit):
        return
    flat = indices.reshape(-1)
    first = int(np.flatnonzero((flat < 0) | (flat >= limit))[0])
    place = ",".join(str(i) for i in np.unravel_index(first, indices.shape))
    where = f"[{place}]" if indices.ndim else ""
    raise InvalidArgumentError(f"{what}{where} = {flat[first]} is not in [0, {limit})")


def take(x: Array, indices: Array, axis: int) -> Array:
    """The slices along an axis that the indices name; InvalidArgumentError for an index out of range."""
    if x.size == 0 and 0 in (*x.shape[:axis], *x.shape[axis + 1 :]):
        return np.empty((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)  # the result is empty
    if indices.ndim == 0:
        place = int(indices)
        if not 0 <= place < x.shape[axis]:
            check_indices(indices, x.shape[axis])
        before: list[IndexEntry] = [slice(None)] * axis
        return x[(*before, place, ...)]
    check_indices(indices, x.shape[axis])
    if indices.size == 0:
        return np.empty((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    if indices.size > x.shape[axis]:
        output_shape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    return x.take(indices, axis=axis)


@kernel("Gather")
def gather(node: Construction) -> Kernel:
    """The slices of the first axis that the indices name."""

    def run(params: Array, indices: Array) -> Array:
        if params.ndim == 0:
            raise InvalidArgumentError("params must be at least 1 dimensional")
        return take(params, indices, 0)

    return run


@kernel("GatherV2")
def gather_v2(node: Construction) -> Kernel:
    """The slices along `axis` that the indices name; with batch_dims, one set of indices for each batch entry."""
    batch_dims = node.attrs["batch_dims"]

    def run(params: Array, indices: Array, axis: Array) -> Array:
        if axis.ndim:
            raise InvalidArgumentError("axis must be scalar")
        rank, place = params.ndim, int(axis)
        if rank == 0:
            raise InvalidArgumentError("params must be at least 1 dimensional")
        if not -rank <= place < rank:
            least = -place if place < 0 else place + 1
            raise InvalidArgumentError(f"Shape must be at least rank {least} but is rank {rank}")
        place %= rank
        if not batch_dims:
            return take(params, indices, place)
        return _batched(params, indices, place, batch_dims)

    return run


def row_starts(rows: int, size: int) -> Array:
    """The positions in a flat array at which rows of that size begin, as a column; not to be written into."""
    return _few_starts(rows, size) if rows <= _MOST_KEPT else np.arange(rows)[:, None] * size


@lru_cache(maxsize=64)
def _few_starts(rows: int, size: int) -> Array:
    return np.arange(rows)[:, None] * size


def _batched(params: Array, indices: Array, axis: int, batch_dims: int) -> Array:
    if not -indices.ndim <= batch_dims <= indices.ndim:
        raise InvalidArgumentError(
            f"Expected batch_dims in the range [{-indices.ndim}, {indices.ndim}], but got {batch_dims}"
        )
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if batch >= params.ndim:
        raise InvalidArgumentError(f"batch_dims ({batch}) must be less than rank(params) ({params.ndim}).")
    if axis < batch:
        raise InvalidArgumentError(f"batch_dims ({batch}) must be less than or equal to axis ({axis}).")
    for i in range(batch):
        if params.shape[i] != indices.shape[i]:
            raise InvalidArgumentError(
                f"params.shape[{i}]: {params.shape[i]} should be equal to indices.shape[{i}]: {indices.shape[i]}"
            )
    outer, middle, inner = params.shape[:batch], params.shape[batch:axis], params.shape[axis + 1 :]
    index_shape = indices.shape[batch:]
    count, deep = prod(outer), prod(middle)
    if 0 in (*outer, *middle, *index_shape, *inner):
        return np.empty((*outer, *middle, *index_shape, *inner), params.dtype)
    check_indices(indices, params.shape[axis])
    size = params.shape[axis]
    flat = params.reshape(count * deep * size, *inner)
    first = row_starts(count * deep, size).reshape(count, deep, 1)
    picked = flat.take(first + indices.reshape(count, 1, -1), 0)
    return picked.reshape(*outer, *middle, *index_shape, *inner)


def flat_places(indices: Array, sizes: tuple[int, ...]) -> Array:
    """The row-major positions of index tuples (last axis) in an array of these sizes; the tuples must be in range."""
    if not sizes:
        return np.zeros(indices.shape[:-1], np.int64)
    places = indices[..., 0].astype(np.int64)
    for k, size in enumerate(sizes[1:], 1):
        places *= size
        places += indices[..., k]
    return places


def _bad_indices(indices: Array, sizes: tuple[int, ...]) -> Array:
    unsigned = f"u{indices.itemsize}"  # in which negative numbers are the largest
    return np.asarray(indices.view(unsigned) >= np.array(sizes, unsigned))


def bad_tuples(indices: Array, sizes: tuple[int, ...]) -> Array:
    """Which index tuples (last axis) point outside an array of these sizes."""
    return np.asarray(np.logical_or.reduce(_bad_indices(indices, sizes), -1))


def has_bad_tuple(indices: Array, sizes: tuple[int, ...]) -> bool:
    """Whether any index tuple (last axis) points outside an array of these sizes."""
    return bool(np.logical_or.reduce(_bad_indices(indices, sizes), None))


def refuse_tuple(indices: Array, sizes: tuple[int, ...], where: Callable[[str], str]) -> None:
    """InvalidArgumentError for the first tuple that points outside, with the text "indices[..] = [..] " and `where`."""
    if has_bad_tuple(indices, sizes):
        bad = bad_tuples(indices, sizes)
        first = np.argwhere(bad)[0] if bad.ndim else ()
        place = f"[{','.join(map(str, first))}]" if bad.ndim else ""
        values = ", ".join(map(str, indices[tuple(first)].tolist()))
        raise InvalidArgumentError(where(f"indices{place} = [{values}]"))


@kernel("GatherNd")
def gather_nd(node: Construction) -> Kernel:
    """The elements or slices that index tuples (the last axis of `indices`) name."""
    ignore = node.attrs.get("bad_indices_policy", b"") == b"IGNORE"

    def run(params: Array, indices: Array) -> Array:
        if params.ndim == 0:
            raise InvalidArgumentError("params must be at least a vector")
        if indices.ndim == 0:
            raise InvalidArgumentError("indices must be at least a vector")
        depth = indices.shape[-1]
        if depth > params.ndim:
            raise InvalidArgumentError(
                f"index innermost dimension length must be <= params rank; saw: {depth} vs. {params.ndim}"
            )
        result = output_shape((*indices.shape[:-1], *params.shape[depth:]), params.dtype)
        if params.size == 0 and 0 not in indices.shape[:-1]:
            raise InvalidArgumentError(
                f"Requested more than 0 entries, but params is empty.  Params shape: {shape_text(params.shape)}"
            )
        if not ignore:
            refuse_tuple(
                indices,
                params.shape[:depth],
                lambda t: f"{t} does not index into param shape {shape_text(params.shape)}, node name: {node.name}",
            )
        return _picked(params, indices, result, ignore=ignore)

    return run


def _picked(params: Array, indices: Array, result: tuple[int, ...], *, ignore: bool) -> Array:
    depth = indices.shape[-1]
    if 0 in result:
        return np.empty(result, params.dtype)
    places = flat_places(indices, params.shape[:depth]).reshape(-1)
    slices = params.reshape(-1, *params.shape[depth:])
    if not (ignore and has_bad_tuple(indices, params.shape[:depth])):
        return slices.take(places, 0).reshape(result)
    bad = bad_tuples(indices, params.shape[:depth]).reshape(-1)
    rows = slices.take(np.where(bad, 0, places), 0)
    rows[bad] = b"" if params.dtype.kind == "O" else params.dtype.type(0)
    return rows.reshape(result)


@kernel("OneHot")
def one_hot(node: Construction) -> Kernel:
    """For each index a row of off_value with on_value at that position; no on_value if the index is out of range."""
    axis = node.attrs["axis"]
    dtype = numpy_dtype(node.output_types[0])

    def run(indices: Array, depth: Array, on_value: Array, off_value: Array) -> Array:
        _check_one_hot(indices.ndim, axis, (depth, on_value, off_value))
        count = int(depth)
        on, off = (v.item() if dtype.kind == "O" else v for v in (on_value, off_value))
        result = np.empty(output_shape((indices.size, count), dtype), dtype)
        result.fill(off)
        flat = np.asarray(indices.reshape(-1), np.int64)
        starts = row_starts(len(flat), count)[:, 0]
        if is_any_outside(flat, count):
            inside = (flat >= 0) & (flat < count)
            flat, starts = flat[inside], starts[inside]
        result.reshape(-1)[starts + flat] = on
        result = result.reshape(*indices.shape, count)
        return result if axis in (-1, indices.ndim) else np.moveaxis(result, -1, axis)

    return run


def _check_one_hot(rank: int, axis: int, scalars: tuple[Array, Array, Array]) -> None:
    if axis != -1 and not 0 <= axis <= rank:
        raise InvalidArgumentError(f"Expected axis to be -1 or between [0, {rank + 1}).  But received: {axis}")
    for name, value in zip(("depth", "on_value", "off_value"), scalars, strict=True):
        if value.ndim:
            raise InvalidArgumentError(f"{name} must be a scalar, but got: {shape_text(value.shape)}")
    if scalars[0] < 0:
        raise InvalidArgumentError(f"depth must be non-negative, got: {int(scalars[0])}")
