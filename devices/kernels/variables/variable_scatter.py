"""Reading and updating rows of variables: gathers and scatters on reference and resource variables.

All indices are checked before anything changes, so a refused update leaves the variable unchanged (TensorFlow applies
the updates before the bad index). An update makes a new array; arrays that were read before do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ...state import Variable
from ..arrays.combining import combine_rows
from ..arrays.indices import is_any_outside
from ..half_types import BFLOAT16
from ..registry import Construction, Kernel, kernel
from .variables import updating, variable_of

Index = Array | tuple[Array, ...]
# changes rows of its first argument in place: (target, index into it, updates)
Apply = Callable[[Array, Index, Array], None]


def _replace(target: Array, index: Index, updates: Array) -> None:
    target[index] = updates


def _with(ufunc: np.ufunc) -> Apply:
    """Combines each update with its row; an index that occurs twice is combined twice."""

    def apply(target: Array, index: Index, updates: Array) -> None:
        if target.dtype == BFLOAT16:  # numpy's indexed ufuncs round after each step; one wide pass rounds once
            wide = target.astype(np.float32)
            ufunc.at(wide, index, np.asarray(updates, np.float32))
            target[...] = wide.astype(BFLOAT16)
        elif isinstance(index, np.ndarray) and index.ndim == 1 and updates.ndim:
            combine_rows(ufunc, target, index, updates)
        else:
            ufunc.at(target, index, updates)

    return apply


def _divide(target: Array, index: Index, updates: Array) -> None:
    if target.dtype.kind not in "iu":
        _with(np.divide)(target, index, updates)
        return
    if np.any(np.asarray(updates) == 0):
        raise InvalidArgumentError("Integer division by zero")
    signs = np.ones(target.shape, target.dtype)  # integer division of TensorFlow rounds to zero, numpy's downwards
    rows = np.broadcast_to(updates, target[index].shape)
    np.multiply.at(signs, index, np.sign(rows))
    magnitudes = np.abs(target)
    np.floor_divide.at(magnitudes, index, np.abs(rows))
    target[...] = magnitudes * np.sign(target) * signs


_OPERATIONS: dict[str, Apply] = {
    "Update": _replace,
    "Add": _with(np.add),
    "Sub": _with(np.subtract),
    "Mul": _with(np.multiply),
    "Div": _divide,
    "Min": _with(np.minimum),
    "Max": _with(np.maximum),
}


def check_rows(indices: Array, limit: int) -> None:
    """InvalidArgumentError unless every index lies in [0, limit)."""
    if is_any_outside(indices, limit):
        where = np.argwhere((indices < 0) | (indices >= limit))[0]
        place = ",".join(map(str, where))
        bracket = f"[{place}]" if place else ""
        raise InvalidArgumentError(f"indices{bracket} = {indices[tuple(where)]} is not in [0, {limit})")


def _scattered(old: Array, indices: Array, updates: Array, apply: Apply) -> Array:
    if old.ndim == 0:
        raise InvalidArgumentError(f"params must be at least 1-D, got shape {shape_text(old.shape)}")
    expected = indices.shape + old.shape[1:]
    if updates.ndim and updates.shape != expected:
        raise InvalidArgumentError(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], "
            f"got updates.shape {shape_text(updates.shape)}, indices.shape {shape_text(indices.shape)}, "
            f"params.shape {shape_text(old.shape)}"
        )
    check_rows(indices, old.shape[0])
    result = old.copy()
    if indices.ndim > 1 and updates.ndim:
        updates = updates.reshape(-1, *old.shape[1:])
    if indices.size:
        apply(result, indices.reshape(-1) if indices.ndim > 1 else indices, updates)
    return result


@kernel(*(f"{form}Scatter{name}" for form in ("", "Resource") for name in _OPERATIONS))
def scatter(node: Construction) -> Kernel:
    """Updates rows of a variable."""
    is_resource, name = node.op.startswith("Resource"), node.op.removeprefix("Resource").removeprefix("Scatter")
    apply = _OPERATIONS[name]

    def update(variables: Sequence[Variable], others: Sequence[Array]) -> None:
        (variable,), (indices, updates) = variables, others
        if is_resource and updates.ndim and updates.shape[: indices.ndim] != indices.shape:
            raise InvalidArgumentError(
                f"The shape of indices ({shape_text(indices.shape)}) must be a prefix of "
                f"the shape of updates ({shape_text(updates.shape)})"
            )
        variable.value = _scattered(variable.read(), indices, updates, apply)

    return updating(node, update)


def _check_positions(indices: Array, shape: Sequence[int]) -> None:
    """InvalidArgumentError unless every index tuple (last axis of `indices`) lies inside `shape`."""
    depth = indices.shape[-1]
    outside = ((indices < 0) | (indices >= np.array(shape[:depth], np.int64))).any(axis=-1)
    if outside.any():
        where = tuple(np.argwhere(outside)[0])
        place = ",".join(map(str, where))
        values = ", ".join(map(str, indices[where]))
        raise InvalidArgumentError(f"indices[{place}] = [{values}] does not index into shape {shape_text(shape)}")


def _scattered_nd(old: Array, indices: Array, updates: Array, apply: Apply) -> Array:
    if indices.ndim < 1 or indices.shape[-1] > old.ndim:
        raise InvalidArgumentError(
            f"Indices of shape {shape_text(indices.shape)} cannot index a variable of shape {shape_text(old.shape)}"
        )
    expected = indices.shape[:-1] + old.shape[indices.shape[-1] :]
    if updates.shape != expected:
        raise InvalidArgumentError(
            f"Must have updates.shape = indices.shape[:batch_dim] + params_shape[slice_dim:], got updates.shape: "
            f"{shape_text(updates.shape)}, indices.shape: {shape_text(indices.shape)}, "
            f"params_shape: {shape_text(old.shape)}"
        )
    _check_positions(indices, old.shape)
    result = old.copy()
    if updates.size:
        apply(result, tuple(np.moveaxis(indices, -1, 0)), updates)
    return result


_ND = ("Update", "Add", "Sub", "Min", "Max")


@kernel(*(f"{form}ScatterNd{name}" for form in ("", "Resource") for name in _ND))
def scatter_nd(node: Construction) -> Kernel:
    """Updates slices of a variable, each at a position of its own."""
    apply = _OPERATIONS[node.op.removeprefix("Resource").removeprefix("ScatterNd")]

    def update(variables: Sequence[Variable], others: Sequence[Array]) -> None:
        (variable,), (indices, updates) = variables, others
        variable.value = _scattered_nd(variable.read(), indices, updates, apply)

    return updating(node, update)


@kernel("ResourceGather")
def resource_gather(node: Construction) -> Kernel:
    """Rows of a resource variable; with batch_dims each batch of indices reads its own batch of the variable."""
    find, batch_dims = variable_of(node), int(node.attrs["batch_dims"])

    def gather(handle: Array, indices: Array) -> Array:
        params = find(handle).read()
        if params.ndim == 0:
            raise InvalidArgumentError("params must be at least 1 dimensional")
        check_rows(indices, params.shape[batch_dims])
        if batch_dims == 0:
            return np.asarray(params[indices])
        trailing = (1,) * (indices.ndim - batch_dims)
        grids = [
            np.arange(size).reshape((1,) * axis + (size,) + (1,) * (batch_dims - axis - 1) + trailing)
            for axis, size in enumerate(params.shape[:batch_dims])
        ]
        return np.asarray(params[(*grids, indices)])

    return gather


@kernel("ResourceGatherNd")
def resource_gather_nd(node: Construction) -> Kernel:
    """Slices of a resource variable, each at a position of its own."""
    find = variable_of(node)

    def gather(handle: Array, indices: Array) -> Array:
        params = find(handle).read()
        if indices.ndim < 1 or indices.shape[-1] > params.ndim:
            raise InvalidArgumentError("index innermost dimension length must be <= params rank")
        _check_positions(indices, params.shape)
        return np.asarray(params[tuple(np.moveaxis(indices, -1, 0))])

    return gather
