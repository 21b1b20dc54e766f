"""Shape functions of tensor lists, maps, optional values and stacks.

A list is a scalar, the handle of a stack a vector of two strings. The shape of an element that is read comes from the
op's own input; the shapes inside a list are known only when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.dims import shape_from
from ...analysis.shape_functions import (
    ShapeContext,
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

shape_fn("OptionalNone", "OptionalFromValue", "OptionalHasValue")(scalar)
shape_fn("EmptyTensorList", "TensorListReserve", "TensorListLength", "TensorListResize")(scalar)
shape_fn("TensorListPushBack", "TensorListSetItem", "TensorListScatter", "TensorListScatterV2")(scalar)
shape_fn("TensorListScatterIntoExistingList", "TensorListSplit")(scalar)
shape_fn("TensorListConcatLists")(unchanged)
shape_fn("TensorListElementShape")(unknown)
shape_fn("EmptyTensorMap", "TensorMapErase", "TensorMapHasKey", "TensorMapInsert", "TensorMapSize")(scalar)
shape_fn("TensorMapLookup", "TensorMapStackKeys")(unknown)


@shape_fn("TensorListPushBackBatch")
def tensor_list_push_back_batch(c: ShapeContext) -> Sequence[Shape]:
    """A vector of lists, one for each row."""
    rows = with_rank_at_least(c.inputs[1], 1)
    (count,) = with_rank(c.inputs[0], 1)
    return ((merge_dims(count, None if rows is None else rows[0]),),)


@shape_fn("TensorListFromTensor")
def tensor_list_from_tensor(c: ShapeContext) -> Sequence[Shape]:
    """A scalar."""
    with_rank_at_least(c.inputs[0], 1)
    return ((),)


@shape_fn("TensorListGetItem")
def tensor_list_get_item(c: ShapeContext) -> Sequence[Shape]:
    """The requested element shape."""
    return (shape_from(c, 2),)


@shape_fn("TensorListPopBack")
def tensor_list_pop_back(c: ShapeContext) -> Sequence[Shape]:
    """The list, and an element of the requested shape."""
    return ((), shape_from(c, 1))


@shape_fn("TensorListStack")
def tensor_list_stack(c: ShapeContext) -> Sequence[Shape]:
    """As many rows as the attr says, of the requested shape."""
    element, count = shape_from(c, 1), c.attrs["num_elements"]
    return (None if element is None else (None if count < 0 else count, *element),)


@shape_fn("TensorListGather")
def tensor_list_gather(c: ShapeContext) -> Sequence[Shape]:
    """One row of the requested shape per index."""
    element = shape_from(c, 2)
    return (None if element is None else (*with_rank(c.inputs[1], 1), *element),)


@shape_fn("TensorListConcat", "TensorListConcatV2")
def tensor_list_concat(c: ShapeContext) -> Sequence[Shape]:
    """Rows of the requested shape, and the number of rows of each element."""
    element = c.attrs["element_shape"] if c.op == "TensorListConcat" else shape_from(c, 1)
    return (None if not element else (None, *element[1:]), (None,))


@shape_fn("OptionalGetValue")
def optional_get_value(c: ShapeContext) -> Sequence[Shape]:
    """The shapes that the attr declares."""
    shapes: Sequence[Shape] = c.attrs["output_shapes"]
    return shapes


shape_fn("StackPop", "StackPopV2")(unknown)


shape_fn("StackClose", "StackCloseV2")(no_outputs)


@shape_fn("Stack", "StackV2")
def stack(c: ShapeContext) -> Sequence[Shape]:
    """The handle."""
    return ((2,),)


@shape_fn("StackPush", "StackPushV2")
def stack_push(c: ShapeContext) -> Sequence[Shape]:
    """The element that was pushed."""
    return (c.inputs[1],)
