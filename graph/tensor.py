"""TensorProto to numpy and back, in every encoding that a GraphDef can contain.

`tensor_to_numpy(numpy_to_tensor(a))` equals `a` bit for bit. A decoded array is read-only because every step that reads
the constant shares it. The rules are those of TensorFlow's tensor.proto: `tensor_content` overrides the typed fields,
typed fields may be shorter than the tensor (the last value repeats), and half types are stored as bit patterns.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from ..errors import DataLossError, InvalidArgumentError, ResourceExhaustedError
from .dtypes import Array, DataType, Shape, dtype_name, from_numpy, is_ref, numpy_dtype
from .protos import ResourceHandleProto, TensorProto, TensorShapeProto
from .varint import read_varint

_INT_VAL = ("int_val", np.dtype(np.int32))
# The typed field of each element type, and the numpy type of its items.
_FIELDS: dict[DataType, tuple[str, np.dtype[Any]]] = {
    DataType.FLOAT: ("float_val", np.dtype(np.float32)),
    DataType.DOUBLE: ("double_val", np.dtype(np.float64)),
    DataType.INT32: _INT_VAL,
    DataType.INT16: _INT_VAL,
    DataType.INT8: _INT_VAL,
    DataType.UINT8: _INT_VAL,
    DataType.UINT16: _INT_VAL,
    DataType.QINT8: _INT_VAL,
    DataType.QUINT8: _INT_VAL,
    DataType.QINT16: _INT_VAL,
    DataType.QUINT16: _INT_VAL,
    DataType.QINT32: _INT_VAL,
    DataType.INT4: _INT_VAL,
    DataType.UINT4: _INT_VAL,
    DataType.INT2: _INT_VAL,
    DataType.UINT2: _INT_VAL,
    DataType.UINT32: ("uint32_val", np.dtype(np.uint32)),
    DataType.UINT64: ("uint64_val", np.dtype(np.uint64)),
    DataType.INT64: ("int64_val", np.dtype(np.int64)),
    DataType.BOOL: ("bool_val", np.dtype(np.bool_)),
    DataType.COMPLEX64: ("scomplex_val", np.dtype(np.float32)),
    DataType.COMPLEX128: ("dcomplex_val", np.dtype(np.float64)),
    DataType.HALF: ("half_val", np.dtype(np.int32)),
    DataType.BFLOAT16: ("half_val", np.dtype(np.int32)),
}
_TENSOR_TYPES = frozenset(int(dtype) for dtype in DataType if dtype)
MOST_ELEMENTS = 2**63 - 1  # TensorFlow counts in int64
_BIT_PATTERN = {DataType.HALF: np.uint16, DataType.BFLOAT16: np.uint16}
_FLOAT8 = frozenset(d for d in DataType if d.name.startswith("FLOAT8"))
_MOST_AXES = 254


def shape_from_proto(proto: TensorShapeProto) -> Shape:
    """The shape a message describes: None for an unknown rank, None for a size of -1.

    Raises InvalidArgumentError for what no tensor can have: other negative sizes, more than 2**63 - 1 elements, more
    than 254 axes, and sizes beside an unknown rank.
    """
    sizes = [dim.size for dim in proto.dim]
    if proto.unknown_rank:
        if sizes:
            raise InvalidArgumentError("An unknown shape must not have any dimensions set.")
        return None
    _check_sizes(sizes)
    return tuple([None if size < 0 else size for size in sizes])


def _check_sizes(sizes: Sequence[int]) -> None:
    """Raises InvalidArgumentError for the first size that no shape can have, with TensorFlow's words.

    Elements are counted up to the first size that is unknown.
    """
    if len(sizes) > _MOST_AXES:
        raise InvalidArgumentError(f"Shape {_sizes_text(sizes)} has too many dimensions")
    count: int | None = 1
    for size in sizes:
        if size < -1:
            raise InvalidArgumentError(
                f"Shape {_sizes_text(sizes)} has dimensions with values below -1 (where -1 means unknown)"
            )
        count = None if count is None or size < 0 else count * size
        if count is not None and count > MOST_ELEMENTS:
            raise InvalidArgumentError(f"Shape {_sizes_text(sizes)} is too large (more than 2**63 - 1 entries)")


def _sizes_text(sizes: Sequence[int]) -> str:
    return "[" + ",".join("?" if size == -1 else str(size) for size in sizes) + "]"


def recorded_shape(proto: TensorShapeProto) -> Shape:
    """The shape in a record of a step, which is not checked: every negative size is an unknown one."""
    return None if proto.unknown_rank else tuple(None if dim.size < 0 else dim.size for dim in proto.dim)


def shape_to_proto(shape: Shape) -> TensorShapeProto:
    """The message of a shape, unknown sizes as -1."""
    if shape is None:
        return TensorShapeProto(unknown_rank=True)
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=-1 if size is None else size) for size in shape])


def full_shape(proto: TensorProto) -> tuple[int, ...]:
    """The shape of a tensor; an unknown rank is read as a scalar, as in TensorFlow, because old files contain it."""
    known = () if proto.tensor_shape.unknown_rank else tuple([dim.size for dim in proto.tensor_shape.dim])
    if any(size < 0 for size in known):
        raise InvalidArgumentError(f"Shape {_sizes_text(known)} is not fully defined")
    if prod(known) > MOST_ELEMENTS:
        raise InvalidArgumentError(f"a tensor of shape {known} has more elements than can be counted")
    return known


def _split_strings(data: bytes, count: int) -> list[bytes]:
    """Strings laid out as `count` varint lengths followed by all their bytes."""
    position, lengths = 0, []
    try:
        for _ in range(count):
            length, position = read_varint(data, position)
            lengths.append(length)
    except DataLossError:
        raise InvalidArgumentError("string tensor_content ends inside a length; the file is damaged") from None
    if sum(lengths) != len(data) - position:
        raise InvalidArgumentError(
            f"string tensor_content holds {len(data) - position} bytes, its lengths add up to {sum(lengths)}"
        )
    strings = []
    for length in lengths:
        strings.append(data[position : position + length])
        position += length
    return strings


def _objects(values: Sequence[Any], shape: tuple[int, ...], empty: Callable[[], Any], *, repeat: bool) -> Array:
    """Values of an object type as an array of `shape`: missing ones repeat the last value, or are made by `empty`."""
    count = int(np.prod(shape, dtype=np.int64))
    array = np.empty(count, object)
    for i in range(count):
        if i < len(values):
            array[i] = values[i]
        else:
            array[i] = values[-1] if values and repeat else empty()
    return array.reshape(shape)


def _from_objects(proto: TensorProto, dtype: DataType, shape: tuple[int, ...]) -> Array:
    if dtype == DataType.STRING:
        values: list[Any] = list(proto.string_val)
        if proto.tensor_content:
            values = _split_strings(proto.tensor_content, int(np.prod(shape, dtype=np.int64)))
        return _objects(values, shape, bytes, repeat=True)
    if dtype == DataType.RESOURCE:
        return _objects(list(proto.resource_handle_val), shape, ResourceHandleProto, repeat=True)
    return _objects(list(proto.variant_val), shape, lambda: None, repeat=False)


def _from_content(content: bytes, dtype: DataType, shape: tuple[int, ...]) -> Array:
    native = numpy_dtype(dtype)
    expected = int(np.prod(shape, dtype=np.int64)) * native.itemsize
    if len(content) != expected:
        raise InvalidArgumentError(
            f"tensor_content of a {dtype_name(dtype)} tensor of shape {list(shape)} must be {expected} bytes, "
            f"it is {len(content)}"
        )
    return np.frombuffer(content, native).reshape(shape)


def _typed_values(proto: TensorProto, dtype: DataType) -> Array:
    """The items of the typed field as elements of `dtype`, however many there are."""
    native = numpy_dtype(dtype)
    if dtype in _FLOAT8:
        return np.frombuffer(proto.float8_val, np.uint8).view(native)
    field, item = _FIELDS[dtype]
    values = np.array(getattr(proto, field), item)
    if dtype in _BIT_PATTERN:
        return values.astype(_BIT_PATTERN[dtype]).view(native)
    if native.kind == "c":
        return values[: len(values) // 2 * 2].view(native)
    return values.astype(native)


def _from_fields(proto: TensorProto, dtype: DataType, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    values = _typed_values(proto, dtype)
    if len(values) >= count:
        return values[:count].reshape(shape)
    last = values[-1] if len(values) else np.zeros((), values.dtype)
    array = np.full(count, last, values.dtype)
    array[: len(values)] = values
    return array.reshape(shape)


def tensor_to_numpy(proto: TensorProto) -> Array:
    """The value of a TensorProto as a read-only array of dtype `numpy_dtype(proto.dtype)`.

    Raises InvalidArgumentError for an unknown or reference type, a shape with unknown sizes, or content of a wrong
    length, ResourceExhaustedError for more elements than fit into memory.
    """
    try:
        return _read(proto)
    except MemoryError as error:
        shape = shape_from_proto(proto.tensor_shape)
        raise ResourceExhaustedError(f"a tensor of shape {shape} does not fit into memory") from error


def _read(proto: TensorProto) -> Array:
    try:
        dtype = DataType(proto.dtype)
    except ValueError:
        raise InvalidArgumentError(f"{proto.dtype} is no element type of a tensor") from None
    if dtype == DataType.INVALID or is_ref(dtype):
        raise InvalidArgumentError(f"a tensor cannot have elements of type {dtype_name(dtype)}")
    shape = full_shape(proto)
    if 0 in shape:
        array = np.empty(shape, numpy_dtype(dtype))
    elif numpy_dtype(dtype).kind == "O":
        array = _from_objects(proto, dtype, shape)
    elif proto.tensor_content:
        array = _from_content(proto.tensor_content, dtype, shape)
    elif dtype in _FIELDS or dtype in _FLOAT8:
        array = _from_fields(proto, dtype, shape)
    else:
        raise InvalidArgumentError(f"a {dtype_name(dtype)} tensor must carry its values as tensor_content")
    array.flags.writeable = False
    return array


def numpy_to_tensor(array: Array, dtype: DataType | None = None) -> TensorProto:
    """The TensorProto of an array: raw bytes for numbers, `string_val` for strings.

    `dtype` names the element type where numpy's is ambiguous (quantised types); default: `from_numpy`. Raises
    InvalidArgumentError for elements that no tensor can hold.
    """
    array = np.asarray(array)
    kind = from_numpy(array) if dtype is None else dtype
    proto = TensorProto(dtype=f"DT_{kind.name}", tensor_shape=shape_to_proto(array.shape))
    if kind == DataType.STRING:
        proto.string_val.extend(_as_bytes(item) for item in array.reshape(-1).tolist())
    elif kind == DataType.RESOURCE:
        proto.resource_handle_val.extend(array.reshape(-1).tolist())
    else:
        proto.tensor_content = np.ascontiguousarray(array, numpy_dtype(kind)).tobytes()
    return proto


def fill_fields(proto: TensorProto, array: Array, dtype: DataType) -> None:
    """Puts the elements into the typed field of their type, as old files have them; the message gets no type or shape.

    Raises InvalidArgumentError for a type without such a field.
    """
    values = np.ascontiguousarray(array).reshape(-1)
    if dtype == DataType.STRING:
        proto.string_val.extend(_as_bytes(item) for item in values.tolist())
        return
    if dtype not in _FIELDS:
        raise InvalidArgumentError(f"Tensor slice serialization not implemented for dtype {int(dtype)}")
    field, item = _FIELDS[dtype]
    native = _BIT_PATTERN.get(dtype, item if values.dtype.kind == "c" else values.dtype)
    getattr(proto, field).extend(values.view(native).tolist())


def parse_tensor(data: bytes) -> TensorProto:
    """Parses a serialised TensorProto; InvalidArgumentError for damaged bytes or a tensor without element type."""
    proto = TensorProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        text = b64encode(data).decode()
        raise InvalidArgumentError(f"Could not parse `serialized` as TensorProto, base64: {text}") from None
    if int(proto.dtype) not in _TENSOR_TYPES:
        raise InvalidArgumentError(f"Cannot parse tensor from proto: {proto}")
    return proto


def _as_bytes(item: object) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode()
    raise InvalidArgumentError(f"a string tensor holds bytes or text, not {type(item).__name__} {item!r}")
