"""The ops on tensor arrays: making, writing, reading and closing them, one element or all at once.

The flow is a scalar that a write gives out and later ops take in: it orders the ops in the graph. An array exists as
long as a tensor carries it, so never longer than its step. The versions of the ops differ in the form of the handle
(`devices/kernels/carried.py`) and in that the ones that make an array give out a flow from version 3 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, Shape
from ...state import Variable
from ..arrays.slicing import stacked
from ..carried import carried, handle_carrying
from ..checks import vector_of
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .tensor_array import ArrayElement, TensorArray, compatible, is_complete, zeros_of

_NO_FLOW = np.float32(0)
_CONTAINER = "_tensor_arrays"
_PLACE_BYTES = 120  # of the object for one element


def _array_of(handle: Array | Variable) -> TensorArray:
    return carried(handle, TensorArray, "a tensor array")


def _handle(node: Construction, array: TensorArray, flow: Array | np.float32) -> object:
    """The outputs of an op that makes an array: its handle, and the flow if there is an output for it."""
    handle = handle_carrying(array, node.output_types[0], _CONTAINER, array.name)
    return handle if len(node.output_types) == 1 else (handle, flow)


@kernel("TensorArray", "TensorArrayV2", "TensorArrayV3")
def tensor_array(node: Construction) -> Kernel:
    """A new array of that size, and the flow before any write."""
    attrs = node.attrs
    name, dtype, shape = attrs["tensor_array_name"].decode() or node.name, attrs["dtype"], attrs["element_shape"]
    dynamic, clears = bool(attrs["dynamic_size"]), bool(attrs["clear_after_read"])
    identical = bool(attrs.get("identical_element_shapes"))

    def make(size: Array) -> object:
        if size.ndim:
            raise InvalidArgumentError(f"TensorArray size must be scalar, but had shape: {shape_text(size.shape)}")
        if size < 0:
            raise InvalidArgumentError("Size should be >= 0.")
        output_shape((int(size), _PLACE_BYTES), np.dtype(np.uint8))
        places = [ArrayElement() for _ in range(int(size))]
        return _handle(node, TensorArray(name, dtype, shape, places, dynamic, clears, identical), _NO_FLOW)

    return make


@kernel("TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape")
def tensor_array_grad(node: Construction) -> Kernel:
    """The gradient array for one source of gradients; its elements may have more dimensions in front."""
    source = node.attrs["source"]

    def find(handle: Array, flow: Array, prepended: Array | None = None) -> object:
        forward = _array_of(handle)
        if forward.sums:
            raise InvalidArgumentError(f"Wrong input container. {forward.name}: gradients of gradients are not kept")
        sizes = () if prepended is None else tuple(vector_of(prepended, "shape_to_prepend"))
        return _handle(node, forward.gradient(source, sizes), flow)

    return find


def _scalar(index: Array) -> int:
    """An index as a number; InvalidArgumentError for other shapes."""
    if index.ndim:
        raise InvalidArgumentError(f"TensorArray index must be scalar, but had shape: {shape_text(index.shape)}")
    return int(index)


@kernel("TensorArrayWrite", "TensorArrayWriteV2", "TensorArrayWriteV3")
def tensor_array_write(node: Construction) -> Kernel:
    """Writes one element."""
    dtype = node.input_types[2]

    def write(handle: Array, index: Array, value: Array, flow: Array) -> Array:
        array = _array_of(handle)
        at = _scalar(index)
        array.check(dtype, "is trying to write")
        array.write(at, value)
        return flow

    return write


@kernel("TensorArrayRead", "TensorArrayReadV2", "TensorArrayReadV3")
def tensor_array_read(node: Construction) -> Kernel:
    """Reads one element."""
    dtype = node.output_types[0]

    def read(handle: Array, index: Array, _flow: Array) -> Array:
        array = _array_of(handle)
        at = _scalar(index)
        array.check(dtype, "requested")
        return array.read(at)

    return read


@kernel("TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3")
def tensor_array_size(node: Construction) -> Kernel:
    """The number of elements."""

    def size(handle: Array, _flow: Array) -> np.int32:
        array = _array_of(handle)
        array.check_open()
        return np.int32(len(array.places))

    return size


@kernel("TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3")
def tensor_array_close(node: Construction) -> Kernel:
    """Removes all elements; afterwards the array can be neither written nor read."""

    def close(handle: Array) -> None:
        array = _array_of(handle)
        array.closed = True
        for place in array.places:
            place.value = None

    return close


@kernel("TensorArrayScatter", "TensorArrayScatterV2", "TensorArrayScatterV3")
def tensor_array_scatter(node: Construction) -> Kernel:
    """Writes row i of a tensor at index i of a list."""
    dtype = node.input_types[2]

    def scatter(handle: Array, indices: Array, value: Array, flow: Array) -> Array:
        array = _array_of(handle)
        if indices.ndim != 1:
            raise InvalidArgumentError(
                f"Expected indices to be a vector, but received shape: {shape_text(indices.shape)}"
            )
        _check_rows(value, "Input value for unpack must be at least a vector but")
        if len(indices) != value.shape[0]:
            raise InvalidArgumentError(
                f"Expected len(indices) == values.shape[0], but saw: {len(indices)} vs. {value.shape[0]}"
            )
        array.check(dtype, "is trying to write")
        last = int(indices.max(initial=-1))
        if last >= len(array.places) and not array.dynamic:
            raise InvalidArgumentError(f"Max scatter index must be < array size ({last} vs. {len(array.places)})")
        _write_rows(array, indices.tolist(), value)
        return flow

    return scatter


def _write_rows(array: TensorArray, indices: Iterable[int], rows: Array) -> None:
    for index, row in zip(indices, rows, strict=True):
        array.write(index, row if rows.ndim > 1 else np.asarray(row, rows.dtype))


@kernel("TensorArrayUnpack")
def tensor_array_unpack(node: Construction) -> Kernel:
    """Writes every row of a tensor, in order; there must be as many as the array has places, unless it grows."""
    dtype = node.input_types[1]

    def unpack(handle: Array, value: Array, flow: Array) -> Array:
        array = _array_of(handle)
        if not value.ndim:
            raise InvalidArgumentError("Input value for unpack must be at least a vector but received shape: []")
        array.check(dtype, "is trying to write")
        size, rows = len(array.places), len(value)
        if rows != size and not (array.dynamic and size < rows):
            raise InvalidArgumentError(
                f"Input value must have first dimension equal to the array size ({rows} vs. {size})"
            )
        _write_rows(array, range(rows), value)
        return flow

    return unpack


def _check_rows(value: Array, refusal: str) -> None:
    if value.ndim == 0:
        raise InvalidArgumentError(f"{refusal} received shape: []")


@kernel("TensorArraySplit", "TensorArraySplitV2", "TensorArraySplitV3")
def tensor_array_split(node: Construction) -> Kernel:
    """Writes consecutive rows of a tensor to the elements, as many to each as `lengths` says."""
    dtype = node.input_types[1]

    def split(handle: Array, value: Array, lengths: Array, flow: Array) -> Array:
        array = _array_of(handle)
        check_lengths(lengths, value)
        array.check(dtype, "is trying to write")
        size = len(array.places)
        if len(lengths) != size and not (array.dynamic and size < len(lengths)):
            raise InvalidArgumentError(
                f"TensorArray's size is not equal to the size of lengths ({size} vs. {len(lengths)}), "
                "and the TensorArray is not marked as dynamically resizeable"
            )
        ends = np.cumsum(lengths).tolist()
        for index, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            array.write(index, value[start:end])
        return flow

    return split


def check_lengths(lengths: Array, value: Array) -> None:
    """InvalidArgumentError unless `lengths` add up to the rows of `value`."""
    if lengths.ndim != 1:
        raise InvalidArgumentError(f"Expected lengths to be a vector, received shape: {shape_text(lengths.shape)}")
    _check_rows(value, "Expected value to be at least a vector, but")
    total = int(lengths.sum())
    if (lengths < 0).any() or total != value.shape[0]:
        raise InvalidArgumentError(
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {total} "
            f"and value's shape is: {shape_text(value.shape)}"
        )


def _check_element(asked: Shape, index: int, shape: tuple[int, ...]) -> None:
    if not compatible(asked, shape):
        raise InvalidArgumentError(
            f"TensorArray was passed element_shape {shape_text(asked)} which does not match "
            f"the Tensor at index {index}: {shape_text(shape)}"
        )


@kernel("TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3")
def tensor_array_gather(node: Construction) -> Kernel:
    """The elements at a list of indices, stacked; they must have one shape."""
    stack = _stacking(node)

    def gather(handle: Array, indices: Array, _flow: Array) -> Array:
        array = _array_of(handle)
        if indices.ndim != 1:
            raise InvalidArgumentError(
                f"Expected indices to be a vector, but received shape: {shape_text(indices.shape)}"
            )
        return stack(array, indices.tolist())

    return gather


@kernel("TensorArrayPack")
def tensor_array_pack(node: Construction) -> Kernel:
    """All elements, stacked; they must have one shape."""
    stack = _stacking(node)

    def pack(handle: Array, _flow: Array) -> Array:
        array = _array_of(handle)
        return stack(array, range(len(array.places)))

    return pack


def _stacking(node: Construction) -> Callable[[TensorArray, Sequence[int]], Array]:
    """A function that stacks the elements at these indices."""
    dtype, asked = node.output_types[0], node.attrs["element_shape"]

    def stack(array: TensorArray, indices: Sequence[int]) -> Array:
        array.check(dtype, "requested")
        if not indices:
            if not is_complete(asked):
                _refuse_unknown("element shape", asked, "packing")
            return zeros_of((0, *asked), dtype)
        if array.element_shape is None:
            array.element_shape = asked
        values = [array.read(index) for index in indices]
        _check_element(asked, 0, values[0].shape)
        for index, value in enumerate(values):
            if value.shape != values[0].shape:
                raise InvalidArgumentError(
                    f"TensorArray has inconsistent shapes.  Index 0 has shape: {shape_text(values[0].shape)} "
                    f"but index {index} has shape: {shape_text(value.shape)}"
                )
        return stacked(values)

    return stack


def _refuse_unknown(what: str, shape: Shape, doing: str) -> None:
    raise UnimplementedError(
        f"TensorArray has size zero, but {what} {shape_text(shape)} is not fully defined. "
        f"Currently only static shapes are supported when {doing} zero-size TensorArrays."
    )


@kernel("TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3")
def tensor_array_concat(node: Construction) -> Kernel:
    """All elements joined along their first dimension, and their lengths there."""
    dtype, asked = node.output_types[0], node.attrs["element_shape_except0"]

    def concat(handle: Array, _flow: Array) -> tuple[Array, Array]:
        array = _array_of(handle)
        array.check(dtype, "requested")
        if not array.places:
            if not is_complete(asked):
                _refuse_unknown("element_shape_except0", asked, "concatenating")
            return zeros_of((0, *asked), dtype), np.zeros(0, np.int64)
        values = [array.read(index) for index in range(len(array.places))]
        _check_joinable(values, asked)
        return np.concatenate(values), np.array([len(value) for value in values], np.int64)

    return concat


def _check_joinable(values: list[Array], asked: Shape) -> None:
    for index, value in enumerate(values):
        if value.ndim == 0:
            raise InvalidArgumentError(
                f"Concat saw a scalar shape at index {index} but requires at least vectors.  Did you mean to call pack?"
            )
        if not compatible(asked, value.shape[1:]):
            raise InvalidArgumentError(
                f"TensorArray was passed element_shape_except0 {shape_text(asked)} but index {index} has "
                f"(excepting dimension 0) shape: {shape_text(value.shape[1:])} which does not match."
            )
        if value.shape[1:] != values[0].shape[1:]:
            raise InvalidArgumentError(
                "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: "
                f"{shape_text(values[0].shape[1:])} but index {index} has (excepting dimension 0) shape: "
                f"{shape_text(value.shape[1:])}"
            )
