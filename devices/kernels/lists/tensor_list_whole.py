"""Lists of tensors, as variants: conversion between a list and one tensor, and ops on whole lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, Shape, dtype_name
from ..arrays.indices import sizes_of
from ..arrays.slicing import stacked
from ..carried import carrying
from ..checks import scalar_of, vector_of
from ..registry import Construction, Kernel, kernel
from .tensor_array import compatible, is_complete, zeros_of
from .tensor_list import Item, TensorList, common_shape, filled, list_of, listing, merged, resized, shape_of


def _check_rows(value: Array) -> None:
    if value.ndim == 0:
        raise InvalidArgumentError("Tensor must be at least a vector, but saw shape: []")


def _check_element(shape: Shape, row: tuple[int, ...]) -> None:
    if not compatible(shape, row):
        raise InvalidArgumentError(
            f"Specified a list with shape {shape_text(shape)} from a tensor with shape {shape_text(row)}"
        )


def _rows(value: Array) -> list[Array]:
    if value.ndim > 1:
        return list(value)
    return [np.asarray(row, value.dtype) for row in value] if value.dtype != object else [_boxed(row) for row in value]


def _boxed(row: object) -> Array:
    """One element of an object array as a tensor; numpy gives it as bytes or a list object, not as an array."""
    if isinstance(row, np.ndarray):
        return row
    array = np.empty((), object)
    array[()] = row
    return array


@kernel("TensorListFromTensor")
def tensor_list_from_tensor(node: Construction) -> Kernel:
    """The rows of a tensor."""
    dtype = node.input_types[0]

    def take_apart(value: Array, shape: Array) -> Array:
        _check_rows(value)
        element = shape_of(shape)
        _check_element(element, value.shape[1:])
        return listing(dtype, element, _rows(value))

    return take_apart


@kernel("TensorListStack")
def tensor_list_stack(node: Construction) -> Kernel:
    """All elements, which must have one shape, as the rows of one tensor."""
    dtype, expected = node.output_types[0], int(node.attrs["num_elements"])

    def stack(value: Array, asked: Array) -> Array:
        tensors = list_of(value, dtype)
        shape = merged(shape_of(asked), tensors.shape)
        if expected not in (-1, tensors.length):
            raise InvalidArgumentError(
                f"Operation expected a list with {expected} elements but got a list with {tensors.length} elements."
            )
        if not is_complete(shape) and not tensors.length:
            raise InvalidArgumentError(
                f"Tried to stack elements of an empty list with non-fully-defined element_shape: {shape_text(shape)}"
            )
        return _stacked(tensors.items, shape, dtype, "stack list which only contains uninitialized tensors and has a")

    return stack


def _stacked(items: Sequence[Item], shape: Shape, dtype: DataType, doing: str) -> Array:
    """The elements as rows; InvalidArgumentError if shapes differ, or none is set and the shape is unknown."""
    shape = common_shape(shape, items)
    if not is_complete(shape):
        raise InvalidArgumentError(f"Tried to {doing} non-fully-defined element_shape: {shape_text(shape)}")
    rows = filled(items, shape, dtype)
    return stacked(rows) if rows else zeros_of((0, *(shape or ())), dtype)


@kernel("TensorListGather")
def tensor_list_gather(node: Construction) -> Kernel:
    """The elements at a list of indices as the rows of one tensor."""
    dtype = node.output_types[0]

    def gather(value: Array, indices: Array, asked: Array) -> Array:
        items = list_of(value, dtype)
        shape = merged(shape_of(asked), items.shape)
        numbers = indices.reshape(-1).tolist()
        if not numbers and not is_complete(shape):
            raise InvalidArgumentError(
                f"Tried to gather 0-elements from a list with non-fully-defined shape: {shape_text(shape)}"
            )
        for index in numbers:
            if not 0 <= index < items.length:
                raise InvalidArgumentError(f"Trying to gather element {index} in a list with {items.length} elements.")
        doing = "gather uninitialized tensors from a list with"
        return _stacked([items.storage[index] for index in numbers], shape, dtype, doing)

    return gather


@kernel("TensorListScatter", "TensorListScatterV2")
def tensor_list_scatter(node: Construction) -> Kernel:
    """A new list with row i of a tensor at index i of a list; its length is an input, or fits the largest index."""
    dtype = node.input_types[0]

    def scatter(value: Array, indices: Array, shape: Array, size: Array | None = None) -> Array:
        element = shape_of(shape)
        _check_scattered(value, indices)
        _check_element(element, value.shape[1:])
        count = -1 if size is None else scalar_of(size, "num_elements")
        if count < -1:
            raise InvalidArgumentError(f"TensorListScatter expects num_elements >= -1, found: {count}")
        largest = int(indices.max(initial=-1))
        if count != -1 and largest >= count:
            raise InvalidArgumentError(
                f"TensorListScatter: Trying to scatter at index {largest} in list with size {count}"
            )
        empty = TensorList(dtype, element, [], 0)
        return carrying(_scattered(resized(empty, largest + 1 if count == -1 else count), value, indices))

    return scatter


def _check_scattered(value: Array, indices: Array) -> None:
    _check_rows(value)
    if (indices < 0).any():
        raise InvalidArgumentError("Indices in TensorListScatter must all be non-negative.")
    if indices.size != value.shape[0]:
        raise InvalidArgumentError(
            f"Invalid number of rows in input tensor. Expected: {indices.size} Actual: {value.shape[0]}"
        )


def _scattered(tensors: TensorList, value: Array, indices: Array) -> TensorList:
    items = tensors.items
    for index, row in zip(indices.reshape(-1).tolist(), _rows(value), strict=True):
        items[index] = row
    return tensors.holding(items)


@kernel("TensorListScatterIntoExistingList")
def tensor_list_scatter_into(node: Construction) -> Kernel:
    """The list with row i of a tensor at index i of a list, extended if needed."""
    dtype = node.input_types[1]

    def scatter(value: Array, rows: Array, indices: Array) -> Array:
        tensors = list_of(value, dtype)
        _check_scattered(rows, indices)
        merged(tensors.shape, rows.shape[1:])
        count = max(tensors.length, int(indices.max(initial=-1)) + 1)
        return carrying(_scattered(resized(tensors, count), rows, indices))

    return scatter


@kernel("TensorListConcat", "TensorListConcatV2")
def tensor_list_concat(node: Construction) -> Kernel:
    """All elements joined along their first dimension, and their lengths there."""
    dtype, declared = node.output_types[0], node.attrs.get("element_shape")

    def concat(value: Array, asked: Array | None = None, leading: Array | None = None) -> tuple[Array, Array]:
        tensors = list_of(value, dtype)
        shape = merged(declared if asked is None else shape_of(asked), tensors.shape)
        if shape == ():
            raise InvalidArgumentError("Concat requires elements to be at least vectors, found scalars instead.")
        rest = None if shape is None else shape[1:]
        if asked is None and not tensors.length:
            rest = None if declared is None else declared[1:]
        if not tensors.length and not is_complete(rest):
            raise InvalidArgumentError(
                "All except the first dimension must be fully defined when concating an empty tensor list. "
                f"element_shape: {shape_text(shape)}"
            )
        first = None if shape is None else shape[0]
        items = _joinable(tensors.items, first, rest, [] if leading is None else sizes_of(leading), dtype)
        lengths = np.array([len(item) for item in items], np.int64)
        return np.concatenate(items) if items else zeros_of((0, *(rest or ())), dtype), lengths

    return concat


def _joinable(
    items: Sequence[Item], first: int | None, rest: Shape, leading: Sequence[int], dtype: DataType
) -> list[Array]:
    """The elements, with zeros for those not set; `rest` is the merged shape without the first dimension."""
    for index, item in enumerate(items):
        if item is not None and item.ndim == 0:
            raise InvalidArgumentError(f"Concat saw a scalar shape at index {index} but requires at least vectors.")
        if item is not None:
            rest = merged(rest, item.shape[1:])
    if not is_complete(rest) and items:
        raise InvalidArgumentError(
            "Tried to concat list which only contains uninitialized tensors and has a "
            f"non-fully-defined element_shape: {shape_text(rest)}"
        )
    return [
        zeros_of((_length(index, first, leading), *(rest or ())), dtype) if item is None else item
        for index, item in enumerate(items)
    ]


def _length(index: int, first: int | None, leading: Sequence[int]) -> int:
    """The length of an element that is not set."""
    if first is not None:
        return first
    if index >= len(leading):
        raise InvalidArgumentError(
            f"List contains uninitialized tensor at index {index} but leading_dims has only {len(leading)} elements."
        )
    return leading[index]


@kernel("TensorListSplit")
def tensor_list_split(node: Construction) -> Kernel:
    """The parts of a tensor, of given lengths along its first dimension."""
    dtype = node.input_types[0]

    def split(value: Array, asked: Array, lengths: Array) -> Array:
        shape = shape_of(asked)
        _check_rows(value)
        rest = None if shape is None else shape[1:]
        _check_element(rest, value.shape[1:])
        ends = _ends(vector_of(lengths, "lengths"), value.shape[0])
        known = value.shape[1:] if rest is None else merged(rest, value.shape[1:])
        parts = [value[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return listing(dtype, (None, *(known or ())), parts)

    return split


def _ends(lengths: Sequence[int], total: int) -> list[int]:
    """The end of each part; InvalidArgumentError unless the lengths add up to the total."""
    ends: list[int] = []
    end = 0
    for length in lengths:
        if length < 0:
            raise InvalidArgumentError(f"Invalid value in lengths: {length}")
        if end + length > total:
            raise InvalidArgumentError(f"Attempting to slice [{end}, {end + length}] from tensor with length {total}")
        end += length
        ends.append(end)
    if end != total:
        raise InvalidArgumentError(f"Unused values in tensor. Length of tensor: {total} Values used: {end}")
    return ends


@kernel("TensorListConcatLists")
def tensor_list_concat_lists(node: Construction) -> Kernel:
    """The elements of one list followed by those of another, for each element of two tensors of lists."""
    dtype = node.attrs["element_dtype"]

    def concat(a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise InvalidArgumentError(
                f"input_a and input_b must have the same shape.  Saw: {shape_text(a.shape)} vs. {shape_text(b.shape)}"
            )
        result = np.empty(a.shape, object)
        for number, place in enumerate(np.ndindex(a.shape)):
            result[place] = _joined(list_of(a[place]), list_of(b[place]), number, dtype)
        return result

    return concat


def _joined(a: TensorList, b: TensorList, number: int, dtype: DataType) -> TensorList:
    if a.shape != b.shape:
        raise InvalidArgumentError(
            f"input_a and input_b TensorList element shapes are not identical at index {number}.  "
            f"Saw {shape_text(a.shape)} vs. {shape_text(b.shape)}"
        )
    for name, items in (("a", a), ("b", b)):
        if items.dtype != dtype:
            raise InvalidArgumentError(
                f"input_{name}[{number}].dtype != element_dtype. Saw: {dtype_name(items.dtype)} vs. {dtype_name(dtype)}"
            )
    return a.holding([*a.items, *b.items])
