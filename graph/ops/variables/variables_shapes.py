"""Shape functions of variables, of reading them, and of updates.

A reference has the shape of its variable; the value behind a resource handle has a shape that the handle does not give
here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    no_outputs,
    scalar,
    shape_fn,
    unchanged,
    unknown,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape

shape_fn("VarHandleOp", "VarIsInitializedOp", "IsVariableInitialized")(scalar)
shape_fn("CountUpTo", "ResourceCountUpTo")(scalar)
shape_fn("StridedSliceAssign")(unchanged)
shape_fn("ReadVariableOp", "ResourceGatherNd")(unknown)


@shape_fn("VariableV2", "TemporaryVariable")
def variable(c: ShapeContext) -> Sequence[Shape]:
    """The declared shape."""
    shape: Shape = c.attrs["shape"]
    return (shape,)


@shape_fn("DestroyTemporaryVariable")
def destroy_temporary_variable(c: ShapeContext) -> Sequence[Shape]:
    """The variable's shape."""
    return (c.inputs[0],)


@shape_fn("Variable")
def first_variable(c: ShapeContext) -> Sequence[Shape]:
    """The declared shape; a scalar one meant "unknown" when this op was introduced."""
    shape: Shape = c.attrs["shape"]
    return (shape or None,)


@shape_fn("Assign")
def assign(c: ShapeContext) -> Sequence[Shape]:
    """The merged shape of variable and value, or the value's where the op does not compare them."""
    return (merge(c.inputs[0], c.inputs[1]) if c.attrs["validate_shape"] else c.inputs[1],)


@shape_fn("AssignAdd", "AssignSub")
def assign_update(c: ShapeContext) -> Sequence[Shape]:
    """The merged shape of variable and update."""
    return (merge(c.inputs[0], c.inputs[1]),)


shape_fn(
    "AssignVariableOp",
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "DisableCopyOnRead",
    "DestroyResourceOp",
    *(f"ResourceScatter{name}" for name in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")),
    *(f"ResourceScatterNd{name}" for name in ("Update", "Add", "Sub", "Min", "Max")),
    "ResourceStridedSliceAssign",
)(no_outputs)


@shape_fn("VariableShape")
def variable_shape(c: ShapeContext) -> Sequence[Shape]:
    """A vector as long as the variable's rank."""
    return ((None,),)


@shape_fn(*(f"Scatter{name}" for name in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")))
def scatter(c: ShapeContext) -> Sequence[Shape]:
    """The variable's shape; updates are a scalar, or one row per index."""
    reference = with_rank_at_least(c.inputs[0], 1)
    indices, updates = c.inputs[1], c.inputs[2]
    if reference is not None and indices is not None and updates:
        merge(updates, indices + reference[1:])
    return (reference,)


@shape_fn(*(f"ScatterNd{name}" for name in ("Update", "Add", "Sub", "Min", "Max")))
def scatter_nd(c: ShapeContext) -> Sequence[Shape]:
    """The variable's shape."""
    return (with_rank_at_least(c.inputs[0], 1),)


@shape_fn("ResourceGather")
def resource_gather(c: ShapeContext) -> Sequence[Shape]:
    """Unknown: one row per index, but only the variable knows the length of a row."""
    with_rank(c.inputs[0], 0)
    return (None,)


def check_scalar(shape: Shape) -> None:
    """InvalidArgumentError unless `shape` may be a scalar's."""
    with_rank(shape, 0)


def same_rows(indices: Shape, grad: Shape) -> None:
    """InvalidArgumentError unless `grad` may have one row per index."""
    rows = with_rank_at_least(grad, 1)
    if rows is not None:
        merge_dims(with_rank(indices, 1)[0], rows[0])


shape_fn("GetSessionHandle", "GetSessionHandleV2")(scalar)


@shape_fn("GetSessionTensor", "DeleteSessionTensor")
def session_tensor(c: ShapeContext) -> Sequence[Shape]:
    """Unknown, or no output; a handle is one string."""
    with_rank(c.inputs[0], 0)
    return unknown(c)
