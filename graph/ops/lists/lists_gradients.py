"""Gradients of tensor lists, optional values and stacks.

The gradient of a list is the list of the gradients of its elements; that of an optional value is an optional of
gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import UnimplementedError
from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("TensorListPushBack")
def push_back(op: Forward, grad: Tensor) -> Gradients:
    element = op.inputs[1]
    remaining, popped = op.make_all("TensorListPopBack", grad, op.make("Shape", element), element_dtype=element.dtype)
    return remaining, popped


@gradient("TensorListPopBack", takes_none=True)
def pop_back(op: Forward, list_grad: Tensor | None, grad: Tensor | None) -> Gradients:
    """The gradient of the element is pushed to that of the remaining list, or to zeros if that has none."""
    remaining, popped = op.outputs
    if list_grad is None:
        list_grad = op.make("ZerosLike", remaining)
    if grad is None:
        grad = op.make("ZerosLike", popped)
    return op.make("TensorListPushBack", list_grad, grad), None


@gradient("TensorListStack")
def stack(op: Forward, grad: Tensor) -> Gradients:
    return op.make("TensorListFromTensor", grad, _element_shape(op, grad)), None


@gradient("TensorListFromTensor")
def from_tensor(op: Forward, grad: Tensor) -> Gradients:
    tensor = op.inputs[0]
    rows = op.make("TensorListStack", grad, _element_shape(op, tensor), element_dtype=tensor.dtype)
    return rows, None


def _element_shape(op: Forward, stacked: Tensor) -> Tensor:
    """The shape of one row of a tensor."""
    g, shape = op.g, op.make("Shape", stacked)
    one, none = g.constant([1], DataType.INT32), g.constant([0], DataType.INT32)
    return op.make("StridedSlice", shape, one, none, one, end_mask=1)


@gradient("TensorListGetItem")
def get_item(op: Forward, grad: Tensor) -> Gradients:
    """A list of zeros with the gradient at the index."""
    tensors, index, _ = op.inputs
    return op.make("TensorListSetItem", _zeros(op, tensors, grad.dtype), index, grad), None, None


def _zeros(op: Forward, tensors: Tensor, dtype: DataType) -> Tensor:
    """A list as long as `tensors`, whose elements are not set."""
    shape = op.make("TensorListElementShape", tensors, shape_type=DataType.INT32)
    return op.make("TensorListReserve", shape, op.make("TensorListLength", tensors), element_dtype=dtype)


@gradient("TensorListSetItem")
def set_item(op: Forward, grad: Tensor) -> Gradients:
    """The element gets the gradient at the index; the list gets zeros there."""
    _, index, item = op.inputs
    item_grad = op.make("TensorListGetItem", grad, index, op.make("Shape", item), element_dtype=item.dtype)
    return op.make("TensorListSetItem", grad, index, op.make("ZerosLike", item)), None, item_grad


@gradient("TensorListResize")
def resize(op: Forward, grad: Tensor) -> Gradients:
    return op.make("TensorListResize", grad, op.make("TensorListLength", op.inputs[0])), None


@gradient("TensorListGather")
def gather(op: Forward, grad: Tensor) -> Gradients:
    """The rows of the gradient, scattered into a list of zeros."""
    tensors, indices, _ = op.inputs
    length = op.make("TensorListLength", tensors)
    return op.make("TensorListScatterV2", grad, indices, _element_shape(op, grad), length), None, None


@gradient("TensorListScatter")
def scatter(op: Forward, grad: Tensor) -> Gradients:
    return _gathered(op, grad), None, None


@gradient("TensorListScatterV2")
def scatter_v2(op: Forward, grad: Tensor) -> Gradients:
    return _gathered(op, grad), None, None, None


def _gathered(op: Forward, grad: Tensor) -> Tensor:
    tensor, indices = op.inputs[:2]
    shape = _element_shape(op, tensor)
    return op.make("TensorListGather", grad, indices, shape, element_dtype=tensor.dtype)


@gradient("TensorListScatterIntoExistingList")
def scatter_into(op: Forward, grad: Tensor) -> Gradients:
    """The rows get the gradients at the indices; the list gets zeros there."""
    _, tensor, indices = op.inputs
    rows = op.make("TensorListGather", grad, indices, _element_shape(op, tensor), element_dtype=tensor.dtype)
    zeros = op.make("ZerosLike", tensor)
    return op.make("TensorListScatterIntoExistingList", grad, zeros, indices), rows, None


@gradient("TensorListConcat", takes_none=True)
def concat(op: Forward, grad: Tensor, _lengths_grad: None) -> Gradients:
    """The gradient split into pieces of the same lengths."""
    return (_split(op, grad),)


@gradient("TensorListConcatV2", takes_none=True)
def concat_v2(op: Forward, grad: Tensor, _lengths_grad: None) -> Gradients:
    """The gradient split into pieces of the same lengths."""
    return _split(op, grad), None, None


def _split(op: Forward, grad: Tensor) -> Tensor:
    return op.make("TensorListSplit", grad, _any_length(op, grad), op.outputs[1])


@gradient("TensorListSplit")
def split(op: Forward, grad: Tensor) -> Gradients:
    tensor, _, lengths = op.inputs
    joined = op.make("TensorListConcatV2", grad, _any_length(op, tensor), lengths, element_dtype=tensor.dtype)
    return joined, None, None


def _any_length(op: Forward, tensor: Tensor) -> Tensor:
    """The shape of a piece of a tensor, with -1 for the length."""
    g = op.g
    axis = g.constant(0, DataType.INT32)
    return op.make("ConcatV2", [g.constant([-1], DataType.INT32), _element_shape(op, tensor)], axis)


@gradient("OptionalFromValue")
def optional_from_value(op: Forward, grad: Tensor) -> Gradients:
    """The gradient is an optional, whose values are those of the components."""
    types = op.input_types
    return op.make_all("OptionalGetValue", grad, output_types=types, output_shapes=[None] * len(types))


@gradient("OptionalGetValue")
def optional_get_value(op: Forward, *grads: Tensor) -> Gradients:
    """The gradients of the components, as an optional."""
    return (op.make("OptionalFromValue", list(grads)),)


@gradient("StackPushV2", "StackPopV2")
def stack_use(op: Forward, *_grads: Tensor) -> Gradients:
    """Raises UnimplementedError: only gradients of loops use stacks."""
    raise UnimplementedError("the gradient of the gradient of a loop is not known", node=op.name, op=op.op)
