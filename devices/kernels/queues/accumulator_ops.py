"""Ops on accumulators of gradients: making them, adding gradients, taking their means.

There is one accumulator per device and name, shared by all steps of a session.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, DataType, dtype_name
from ..checks import require, scalar_of, vector_of
from ..handles import Handle, handle_for, handle_value, resource_of
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from .accumulator import Accumulator, DenseAccumulator, SparseAccumulator

ACCUMULATOR_TYPE = "N10tensorflow26ConditionalAccumulatorBaseE"  # TensorFlow's name for their class in messages


@kernel("ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator")
def accumulator(node: Construction) -> Kernel:
    """The accumulator of this container and name."""
    attrs, kind = node.attrs, SparseAccumulator if node.op.startswith("Sparse") else DenseAccumulator
    handle, state = handle_for(node, ACCUMULATOR_TYPE), node.state
    value, is_mean = handle_value(node, handle), attrs["reduction_type"] == b"MEAN"

    def put_out() -> Handle:
        resource = state.resource(handle.key, lambda: kind(DataType(attrs["dtype"]), attrs["shape"], is_mean=is_mean))
        require(type(resource) is kind, f"Expected a {kind.__name__}, found a {type(resource).__name__}")
        return value

    return put_out


def _accumulator_of(node: Construction) -> Callable[[Handle], Accumulator]:
    return resource_of(node, Accumulator, ACCUMULATOR_TYPE, "an accumulator")


def _checked(node: Construction, kind: type[Accumulator]) -> Callable[[Handle], Accumulator]:
    """As `_accumulator_of`; InvalidArgumentError unless it is of that kind and of the node's element type."""
    find, dtype = _accumulator_of(node), DataType(node.attrs["dtype"])

    def checked(handle: Handle) -> Accumulator:
        resource = find(handle)
        require(isinstance(resource, kind), f"Expected a {kind.__name__}, found a {type(resource).__name__}")
        if resource.dtype != dtype:
            raise InvalidArgumentError(
                f"Expected gradients of type {dtype_name(resource.dtype)}, but the node has {dtype_name(dtype)}"
            )
        return resource

    return checked


@deferred_kernel("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient")
def apply_gradient(node: Construction) -> Start:
    """Adds a gradient, unless it is stale."""
    accumulator_of = _checked(node, DenseAccumulator)

    def start(call: Call, handle: Handle, local_step: Array, gradient: Array) -> None:
        accumulator_of(handle).apply(scalar_of(local_step, "local_step"), np.asarray(gradient))
        call.done()

    return start


@deferred_kernel("SparseAccumulatorApplyGradient")
def apply_sparse_gradient(node: Construction) -> Start:
    """Adds some slices of a gradient, unless they are stale."""
    accumulator_of, has_shape = _checked(node, SparseAccumulator), bool(node.attrs["has_known_shape"])

    def start(call: Call, handle: Handle, local_step: Array, indices: Array, values: Array, shape: Array) -> None:
        gradient = (
            np.asarray(indices),
            np.asarray(values),
            np.asarray(vector_of(shape, "gradient_shape"), np.int64) if has_shape else None,
        )
        accumulator_of(handle).apply(scalar_of(local_step, "local_step"), gradient)
        call.done()

    return start


@deferred_kernel("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient")
def take_gradient(node: Construction) -> Start:
    """Waits for enough gradients, and takes them all."""
    accumulator_of = _checked(node, DenseAccumulator)
    return lambda call, handle, required: accumulator_of(handle).take(call, scalar_of(required, "num_required"))


@deferred_kernel("SparseAccumulatorTakeGradient")
def take_sparse_gradient(node: Construction) -> Start:
    """Waits for enough gradients, and takes them all."""
    accumulator_of = _checked(node, SparseAccumulator)
    return lambda call, handle, required: accumulator_of(handle).take(call, scalar_of(required, "num_required"))


@kernel("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep")
def set_global_step(node: Construction) -> Kernel:
    """Sets the accumulator's step; gradients from before it are dropped."""
    accumulator_of = _accumulator_of(node)

    def set_step(handle: Handle, step: Array) -> None:
        accumulator_of(handle).step = scalar_of(step, "new_global_step")

    return set_step


@kernel("AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated")
def num_accumulated(node: Construction) -> Kernel:
    """The number of gradients since the last take."""
    accumulator_of = _accumulator_of(node)
    return lambda handle: np.int32(accumulator_of(handle).count)
