"""Kernels that turn sparse tensors into three strings (or variants) each, and back.

The strings are the serialised indices, values and shape. Many sparse tensors of one rank become one of a higher rank
when they are read, whose shape has the greatest of their sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError, PartitaError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name
from ....graph.tensor import numpy_to_tensor, parse_tensor, tensor_to_numpy
from ....graph.varint import varint
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .sparse import SparseParts, check_entries, ordered_places


@dataclass(frozen=True, slots=True)
class SerializedPart:
    """A tensor as an element of a tensor of variants."""

    tensor: Array
    dtype: DataType


def check_parts(indices: Array, values: Array, shape: Array) -> None:
    """InvalidArgumentError unless these are a matrix and two vectors."""
    for what, form, rank, part in (
        ("indices", "matrix", 2, indices),
        ("values", "vector", 1, values),
        ("shape", "vector", 1, shape),
    ):
        if part.ndim != rank:
            raise InvalidArgumentError(f"Input {what} should be a {form} but received shape {shape_text(part.shape)}")


def serialized_row(parts: SparseParts, dtype: DataType, *, as_variants: bool) -> Array:
    """The three strings, or variants, of one sparse tensor: its indices, values and shape."""
    result = np.empty(3, object)
    for i, (part, kind) in enumerate(zip(parts, (DataType.INT64, dtype, DataType.INT64), strict=True)):
        held: Any = SerializedPart(part, kind) if as_variants else serialized_tensor(part, kind)
        result[i] = held
    return result


def serialized_tensor(x: Array, dtype: DataType) -> bytes:
    """A TensorProto with the bytes of the elements; of strings their lengths and then all of them."""
    message = numpy_to_tensor(x, dtype)
    if dtype == DataType.STRING and x.size:
        texts = x.reshape(-1).tolist()
        del message.string_val[:]
        message.tensor_content = b"".join([*(varint(len(text)) for text in texts), *texts])
    serialized: bytes = message.SerializeToString(deterministic=True)
    return serialized


@kernel("SerializeSparse")
def serialize_sparse(node: Construction) -> Kernel:
    """One sparse tensor: [3]."""
    dtype, as_variants = node.attrs["T"], node.attrs["out_type"] == DataType.VARIANT

    def run(indices: Array, values: Array, shape: Array) -> Array:
        check_parts(indices, values, shape)
        return serialized_row((indices, values, shape), dtype, as_variants=as_variants)

    return run


@kernel("SerializeManySparse")
def serialize_many_sparse(node: Construction) -> Kernel:
    """What a sparse tensor has under each first coordinate: [rows, 3]."""
    dtype, as_variants = node.attrs["T"], node.attrs["out_type"] == DataType.VARIANT

    def run(indices: Array, values: Array, shape: Array) -> Array:
        rows = rows_of(indices, values, shape)
        result = np.empty((len(rows), 3), object)
        for i, parts in enumerate(rows):
            result[i] = serialized_row(parts, dtype, as_variants=as_variants)
        return result

    return run


def rows_of(indices: Array, values: Array, shape: Array) -> list[SparseParts]:
    """What a sparse tensor has under each first coordinate; InvalidArgumentError unless it is ordered."""
    check_parts(indices, values, shape)
    require(shape.size > 1, f"Rank of input SparseTensor should be > 1, but saw rank: {shape.size}")
    check_entries(indices, values, shape.tolist())
    ordered_places(indices, tuple(shape.tolist()))
    ends = np.searchsorted(indices[:, 0], np.arange(int(shape[0]) + 1)).tolist()
    parts = map(slice, ends[:-1], ends[1:])
    return [(indices[part, 1:], values[part], shape[1:]) for part in parts]


def _tensor(element: object) -> tuple[Array, DataType]:
    if isinstance(element, SerializedPart):
        return element.tensor, element.dtype
    try:
        message = parse_tensor(element if isinstance(element, bytes) else b"\xff")
        return tensor_to_numpy(message), DataType(message.dtype)
    except (PartitaError, ValueError):
        raise InvalidArgumentError("Could not parse serialized proto") from None


def _read(i: int, row: Array, dtype: DataType) -> SparseParts:
    """Indices, values and shape of one sparse tensor; InvalidArgumentError if they do not fit each other."""
    (indices, index_type), (values, value_type), (shape, shape_type) = map(_tensor, row.tolist())
    what = f"SparseTensor[{i}]"
    if value_type != dtype:
        raise InvalidArgumentError(
            f"Requested SparseTensor of type {dtype_name(dtype)} but {what}.values.dtype() == {dtype_name(value_type)}"
        )
    require(index_type == shape_type == DataType.INT64, f"{what}: indices and shape have to be int64")
    require(
        indices.ndim == 2, f"Expected {what}.indices to represent an index matrix but received shape {indices.shape}"
    )
    fits = values.shape == (len(indices),) and shape.shape == (indices.shape[1],)
    require(fits, f"{what}: indices, values and shape do not fit each other")
    return indices, values, shape


def stacked(tensors: list[SparseParts], outer: tuple[int, ...]) -> SparseParts:
    """Sparse tensors of one rank in a larger one, which has the axes `outer` in front."""
    rank = tensors[0][2].size
    for i, (_, _, shape) in enumerate(tensors):
        require(
            shape.size == rank,
            f"Inconsistent shape across SparseTensors: rank prior to SparseTensor[{i}] was: {rank} but rank of "
            f"SparseTensor[{i}] is: {shape.size}",
        )
    places = np.indices(outer).reshape(len(outer), len(tensors)).T
    numbers = np.repeat(np.arange(len(tensors)), [len(indices) for indices, _, _ in tensors])
    indices = np.concatenate([places[numbers], np.concatenate([each[0] for each in tensors])], axis=1)
    largest = np.max([shape for _, _, shape in tensors], axis=0)
    shape = np.concatenate([np.array(outer, np.int64), largest])
    return indices.astype(np.int64), np.concatenate([values for _, values, _ in tensors]), shape.astype(np.int64)


@kernel("DeserializeSparse", "DeserializeManySparse")
def deserialize_sparse(node: Construction) -> Kernel:
    """[..., 3] becomes one sparse tensor with the axes in front of the last one."""
    dtype = node.attrs["dtype"]

    def run(serialized: Array) -> SparseParts:
        shape = serialized.shape
        last = shape[-1] if shape else 0
        if last != 3:
            raise InvalidArgumentError(f"Serialized sparse should have 3 as the last dimension {shape_text(shape)}")
        outer = shape[:-1]
        if prod(outer) <= 0:
            raise InvalidArgumentError(
                f"Serialized sparse should have at least 1 serialized tensor, but has a zero dimension "
                f"{shape_text(shape)}"
            )
        tensors = [_read(i, row, dtype) for i, row in enumerate(serialized.reshape(-1, 3))]
        return stacked(tensors, outer)

    return run
