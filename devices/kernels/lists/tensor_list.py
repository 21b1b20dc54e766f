"""Lists of tensors, as variants: making them, and reading and changing one element.

A list is never changed: ops give a new one. An element that is not set reads as zeros if its shape is known. A shape
input is a vector of sizes; a scalar -1 is an unknown shape.

A push shares the storage of the old list: a Python list of which each `TensorList` uses the first `length` elements. A
loop of n pushes and then n pops therefore takes n steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.analysis.shape_functions import merge
from ....graph.dtypes import Array, DataType, Shape, dtype_name, numpy_dtype
from ..carried import carried, carrying, sum_of, zeros_like
from ..checks import scalar_of, single_of
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .tensor_array import compatible, is_complete, zeros_of

Item = Array | None


@dataclass(slots=True)  # not frozen: that would make it five times as slow to make one
class TensorList:
    """`limit` is the largest number of elements that pushes may give it, unlimited if negative."""

    dtype: DataType
    shape: Shape
    storage: list[Item]
    length: int
    limit: int = -1

    @property
    def items(self) -> list[Item]:
        """The elements; None for those that are not set."""
        return self.storage[: self.length]

    def holding(self, items: Iterable[Item]) -> TensorList:
        """A list of the same type and shape with other elements."""
        storage = list(items)
        return TensorList(self.dtype, self.shape, storage, len(storage), self.limit)

    def pushed(self, item: Array) -> TensorList:
        """The list with one more element at the end."""
        storage, length = self.storage, self.length
        if len(storage) == length:
            storage.append(item)
        if storage[length] is not item:  # another list, perhaps of another thread, has pushed there
            storage = [*storage[:length], item]
        return TensorList(self.dtype, self.shape, storage, length + 1, self.limit)

    def popped(self) -> TensorList:
        """The list without its last element."""
        return TensorList(self.dtype, self.shape, self.storage, self.length - 1, self.limit)

    def plus(self, other: TensorList) -> TensorList:
        """The sums of the elements; an element that is not set counts as zeros."""
        if self.dtype != other.dtype:
            raise InvalidArgumentError(
                "Trying to add two lists of tensors of different dtypes. "
                f"One is {dtype_name(self.dtype)} and the other is {dtype_name(other.dtype)}"
            )
        if not compatible(self.shape, other.shape):
            self._refuse("lists of tensors with incompatible element shapes", self.shape, other.shape)
        if self.length != other.length:
            raise InvalidArgumentError(
                "Trying to add two lists of tensors with different lengths. "
                f"One is {self.length} and the other is {other.length}"
            )
        pairs = zip(self.items, other.items, strict=True)
        sums = [b if a is None else a if b is None else self._sum(a, b) for a, b in pairs]
        return TensorList(self.dtype, merge(self.shape, other.shape), sums, self.length, self.limit)

    def _sum(self, a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            self._refuse("tensors with incompatible element shapes", a.shape, b.shape)
        return sum_of(a, b, self.dtype)

    def _refuse(self, what: str, one: Shape, other: Shape) -> None:
        raise InvalidArgumentError(
            f"Trying to add two {what}. One is {shape_text(one)} and the other is {shape_text(other)}"
        )

    def zeros(self) -> TensorList:
        """A list of the same shapes with zeros."""
        return self.holding(None if item is None else zeros_like(item, self.dtype) for item in self.items)


def list_of(value: Array, dtype: DataType | None = None) -> TensorList:
    """The list that a variant carries; InvalidArgumentError for others, and for one of another element type."""
    carried_list = carried(value, TensorList, "a list")
    if dtype is not None and carried_list.dtype != dtype:
        raise InvalidArgumentError(
            f"Invalid data types; op elements {dtype_name(dtype)} but list elements {dtype_name(carried_list.dtype)}"
        )
    return carried_list


def shape_of(value: Array) -> Shape:
    """The shape that a shape input represents."""
    if value.ndim == 0:
        if value != -1:
            raise InvalidArgumentError("The only valid scalar shape tensor is the fully unknown shape specified as -1.")
        return None
    if value.ndim > 1:
        raise InvalidArgumentError(f"Shape must be at most rank 1 but is rank {value.ndim}")
    return tuple([None if size < 0 else size for size in value.tolist()])


def merged(a: Shape, b: Shape) -> Shape:
    """The merged shape; InvalidArgumentError, in the words of the list ops, if the shapes differ."""
    if a == b:
        return a
    if not compatible(a, b):
        raise InvalidArgumentError(
            f"PartialTensorShape: Incompatible shapes during merge: {shape_text(a)} vs. {shape_text(b)}"
        )
    return merge(a, b)


def common_shape(shape: Shape, items: Iterable[Item]) -> Shape:
    """`shape` merged with the shapes of the elements that are set."""
    for item in items:
        if item is not None and item.shape != shape:
            shape = merged(shape, item.shape)
    return shape


def filled(items: Sequence[Item], shape: Shape, dtype: DataType) -> list[Array]:
    """The elements, with zeros of `shape`, which has no unknown sizes, for those that are not set."""
    return [zeros_of(shape, dtype) if item is None else item for item in items]


def listing(dtype: DataType, shape: Shape, items: Iterable[Item], limit: int = -1) -> Array:
    """The variant that carries a new list."""
    storage = list(items)
    return carrying(TensorList(dtype, shape, storage, len(storage), limit))


@kernel("EmptyTensorList")
def empty_tensor_list(node: Construction) -> Kernel:
    """A list without elements; pushes may give it up to `max_num_elements`."""
    dtype = node.attrs["element_dtype"]

    def make(shape: Array, limit: Array) -> Array:
        if limit.ndim:
            raise InvalidArgumentError(
                f"max_num_elements expected to be a scalar but got shape: {shape_text(limit.shape)}"
            )
        return listing(dtype, shape_of(shape), (), scalar_of(limit, "max_num_elements"))

    return make


@kernel("TensorListReserve")
def tensor_list_reserve(node: Construction) -> Kernel:
    """A list of elements that are not set."""
    dtype = node.attrs["element_dtype"]

    def make(shape: Array, size: Array) -> Array:
        if size.size != 1:
            raise InvalidArgumentError(
                f"The num_elements to reserve must be a tensor size 1, but got {shape_text(size.shape)}"
            )
        count = int(np.asarray(size).item())
        if count < 0:
            raise InvalidArgumentError(f"The num_elements to reserve must be a non negative number, but got {count}")
        output_shape((count,), np.dtype(object))
        return listing(dtype, shape_of(shape), [None] * count)

    return make


@kernel("TensorListLength")
def tensor_list_length(node: Construction) -> Kernel:
    """The number of elements."""
    return lambda value: np.int32(list_of(value).length)


@kernel("TensorListElementShape")
def tensor_list_element_shape(node: Construction) -> Kernel:
    """The shape of the elements, with -1 for unknown sizes."""
    dtype = numpy_dtype(node.output_types[0])

    def tell(value: Array) -> Array:
        shape = list_of(value).shape
        return np.array(-1 if shape is None else [-1 if size is None else size for size in shape], dtype)

    return tell


@kernel("TensorListResize")
def tensor_list_resize(node: Construction) -> Kernel:
    """The list cut to `size` elements, or extended by elements that are not set."""

    def resize(value: Array, size: Array) -> Array:
        items, count = list_of(value), scalar_of(size, "size")
        if count < 0:
            raise InvalidArgumentError(f"TensorListSlice expects size to be non-negative. Got: {count}")
        return carrying(resized(items, count))

    return resize


def resized(tensors: TensorList, count: int) -> TensorList:
    """The list with `count` elements."""
    output_shape((count,), np.dtype(object))
    return tensors.holding([*tensors.items[:count], *[None] * (count - tensors.length)])


def _check_set(tensors: TensorList, item: Array, dtype: DataType, doing: str) -> None:
    if dtype != tensors.dtype:
        raise InvalidArgumentError(
            f"Invalid data types; op elements {dtype_name(dtype)} but list elements {dtype_name(tensors.dtype)}"
        )
    if not compatible(tensors.shape, item.shape):
        raise InvalidArgumentError(
            f"Tried to {doing}. Op element shape: {shape_text(item.shape)} list shape: {shape_text(tensors.shape)}"
        )


@kernel("TensorListPushBack")
def tensor_list_push_back(node: Construction) -> Kernel:
    """The list with one more element."""
    dtype = node.input_types[1]

    def push(value: Array, item: Array) -> Array:
        tensors = list_of(value)
        if dtype != tensors.dtype or item.shape != tensors.shape:
            _check_set(tensors, item, dtype, "append a tensor with incompatible shape to a list")
        if 0 <= tensors.limit <= tensors.length:
            raise InvalidArgumentError(
                f"Tried to push item into a full list list size: {tensors.length} max_num_elements: {tensors.limit}"
            )
        return carrying(tensors.pushed(np.asarray(item)))

    return push


@kernel("TensorListPushBackBatch")
def tensor_list_push_back_batch(node: Construction) -> Kernel:
    """Pushes one row of a tensor to each of several lists."""
    dtype = node.input_types[1]

    def push(values: Array, rows: Array) -> Array:
        if rows.shape[: values.ndim] != values.shape:
            raise InvalidArgumentError(
                f"Expected tensor.shape[:{values.ndim}] to be {shape_text(values.shape)}, the shape of the lists, "
                f"but got {shape_text(rows.shape)}"
            )
        result = np.empty(values.shape, object)
        for number, place in enumerate(np.ndindex(values.shape)):
            tensors, row = list_of(values[place]), np.asarray(rows[place])
            _check_set(tensors, row, dtype, f"append a tensor with incompatible shape to a list at index {number}")
            result[place] = tensors.pushed(row)
        return result

    return push


@kernel("TensorListPopBack")
def tensor_list_pop_back(node: Construction) -> Kernel:
    """The list without its last element, and that element."""
    dtype = node.output_types[1]

    def pop(value: Array, shape: Array) -> tuple[Array, Array]:
        tensors = list_of(value, dtype)
        if not tensors.length:
            raise InvalidArgumentError("Trying to pop from an empty list.")
        last = tensors.storage[tensors.length - 1]
        if last is None:
            known = merged(tensors.shape, shape_of(shape))
            if not is_complete(known):
                raise InvalidArgumentError(
                    f"Trying to read an uninitialized tensor but element_shape is not fully defined.{shape_text(known)}"
                )
            last = zeros_of(known, dtype)
        return carrying(tensors.popped()), last

    return pop


@kernel("TensorListGetItem")
def tensor_list_get_item(node: Construction) -> Kernel:
    """One element."""
    dtype = node.output_types[0]

    def get(value: Array, index: Array, shape: Array) -> Array:
        tensors, place = list_of(value, dtype), single_of(index, "index")
        if not 0 <= place < tensors.length:
            raise InvalidArgumentError(f"Trying to access element {place} in a list with {tensors.length} elements.")
        item = tensors.storage[place]
        return _unset(tensors, shape_of(shape)) if item is None else item

    return get


def _unset(tensors: TensorList, asked: Shape) -> Array:
    """The zeros for an element that is not set; the shape may have to come from the other elements."""
    shape = merged(tensors.shape, asked)
    if not is_complete(shape):
        shape = common_shape(shape, tensors.items)
    if not is_complete(shape):
        raise InvalidArgumentError(
            "Trying to read an uninitialized tensor but element_shape is not fully defined: "
            f"{shape_text(shape)} and no list element is set."
        )
    return zeros_of(shape, tensors.dtype)


@kernel("TensorListSetItem")
def tensor_list_set_item(node: Construction) -> Kernel:
    """The list with one element replaced; beyond its end it is extended if the attr allows that."""
    dtype, grows = node.input_types[2], bool(node.attrs["resize_if_index_out_of_bounds"])

    def set_item(value: Array, index: Array, item: Array) -> Array:
        tensors, place = list_of(value), scalar_of(index, "index")
        if dtype != tensors.dtype:
            _check_set(tensors, item, dtype, "")
        if grows and place >= tensors.length:
            tensors = resized(tensors, place + 1)
        if not 0 <= place < tensors.length:
            raise InvalidArgumentError(f"Trying to modify element {place} in a list with {tensors.length} elements.")
        if item.shape != tensors.shape:
            _check_set(tensors, item, dtype, "set a tensor with incompatible shape at a list index")
        items = tensors.items
        items[place] = np.asarray(item)
        return carrying(tensors.holding(items))

    return set_item
