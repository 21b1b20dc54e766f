"""Element types: TensorFlow's DataType numbers, their names and their numpy counterparts.

A reference type is its base type plus 100. `numpy_dtype(from_numpy(d)) == d` for every numpy dtype that has a DataType
of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import Any, cast

import ml_dtypes
import numpy as np

from ..errors import InvalidArgumentError

# The element type of a tensor is a run-time value (DataType), so the static one is left open.
Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int | None, ...] | None
Shapes = tuple[Shape, ...]
Dims = tuple[int, ...]  # a shape of known sizes

REF_OFFSET = 100


class DataType(IntEnum):
    """The element type of a tensor, numbered as in TensorFlow's types.proto; `X_REF` is a reference to an `X`."""

    INVALID = 0
    FLOAT = 1
    DOUBLE = 2
    INT32 = 3
    UINT8 = 4
    INT16 = 5
    INT8 = 6
    STRING = 7
    COMPLEX64 = 8
    INT64 = 9
    BOOL = 10
    QINT8 = 11
    QUINT8 = 12
    QINT32 = 13
    BFLOAT16 = 14
    QINT16 = 15
    QUINT16 = 16
    UINT16 = 17
    COMPLEX128 = 18
    HALF = 19
    RESOURCE = 20
    VARIANT = 21
    UINT32 = 22
    UINT64 = 23
    FLOAT8_E5M2 = 24
    FLOAT8_E4M3FN = 25
    FLOAT8_E4M3FNUZ = 26
    FLOAT8_E4M3B11FNUZ = 27
    FLOAT8_E5M2FNUZ = 28
    INT4 = 29
    UINT4 = 30
    INT2 = 31
    UINT2 = 32
    FLOAT4_E2M1FN = 33
    FLOAT_REF = 101
    DOUBLE_REF = 102
    INT32_REF = 103
    UINT8_REF = 104
    INT16_REF = 105
    INT8_REF = 106
    STRING_REF = 107
    COMPLEX64_REF = 108
    INT64_REF = 109
    BOOL_REF = 110
    QINT8_REF = 111
    QUINT8_REF = 112
    QINT32_REF = 113
    BFLOAT16_REF = 114
    QINT16_REF = 115
    QUINT16_REF = 116
    UINT16_REF = 117
    COMPLEX128_REF = 118
    HALF_REF = 119
    RESOURCE_REF = 120
    VARIANT_REF = 121
    UINT32_REF = 122
    UINT64_REF = 123
    FLOAT8_E5M2_REF = 124
    FLOAT8_E4M3FN_REF = 125
    FLOAT8_E4M3FNUZ_REF = 126
    FLOAT8_E4M3B11FNUZ_REF = 127
    FLOAT8_E5M2FNUZ_REF = 128
    INT4_REF = 129
    UINT4_REF = 130
    INT2_REF = 131
    UINT2_REF = 132
    FLOAT4_E2M1FN_REF = 133


Types = Sequence[DataType]


_NUMPY: dict[DataType, np.dtype[Any]] = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.DOUBLE: np.dtype(np.float64),
    DataType.HALF: np.dtype(np.float16),
    DataType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    DataType.INT8: np.dtype(np.int8),
    DataType.INT16: np.dtype(np.int16),
    DataType.INT32: np.dtype(np.int32),
    DataType.INT64: np.dtype(np.int64),
    DataType.UINT8: np.dtype(np.uint8),
    DataType.UINT16: np.dtype(np.uint16),
    DataType.UINT32: np.dtype(np.uint32),
    DataType.UINT64: np.dtype(np.uint64),
    DataType.BOOL: np.dtype(np.bool_),
    DataType.COMPLEX64: np.dtype(np.complex64),
    DataType.COMPLEX128: np.dtype(np.complex128),
    DataType.STRING: np.dtype(object),
    DataType.RESOURCE: np.dtype(object),
    DataType.VARIANT: np.dtype(object),
    DataType.QINT8: np.dtype(np.int8),
    DataType.QUINT8: np.dtype(np.uint8),
    DataType.QINT16: np.dtype(np.int16),
    DataType.QUINT16: np.dtype(np.uint16),
    DataType.QINT32: np.dtype(np.int32),
    DataType.FLOAT8_E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DataType.FLOAT8_E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DataType.FLOAT8_E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    DataType.FLOAT8_E4M3B11FNUZ: np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    DataType.FLOAT8_E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
    DataType.INT4: np.dtype(ml_dtypes.int4),
    DataType.UINT4: np.dtype(ml_dtypes.uint4),
    DataType.INT2: np.dtype(ml_dtypes.int2),
    DataType.UINT2: np.dtype(ml_dtypes.uint2),
    DataType.FLOAT4_E2M1FN: np.dtype(ml_dtypes.float4_e2m1fn),
}
FLOATS = frozenset({DataType.FLOAT, DataType.DOUBLE, DataType.HALF, DataType.BFLOAT16})
"""the types of which models compute gradients and losses"""
_OBJECT_TYPES = frozenset({DataType.STRING, DataType.RESOURCE, DataType.VARIANT})
_QUANTISED = frozenset({DataType.QINT8, DataType.QUINT8, DataType.QINT16, DataType.QUINT16, DataType.QINT32})
_FROM_NUMPY = {n: d for d, n in _NUMPY.items() if d not in _QUANTISED and d not in _OBJECT_TYPES}
_BY_NAME = {d.name.lower(): d for d in DataType if d is not DataType.INVALID}
_ALIASES = {"float32": DataType.FLOAT, "float64": DataType.DOUBLE, "float16": DataType.HALF}


def known_dims(shape: Shape) -> Dims | None:
    """The shape if all its sizes are known, else None."""
    return None if shape is None or None in shape else cast(Dims, shape)


def is_ref(dtype: int) -> bool:
    """Whether `dtype` is a reference type."""
    return dtype > REF_OFFSET


@cache  # an enum takes many times longer to find a member
def base_type(dtype: int) -> DataType:
    """The type that `dtype` refers to, or `dtype` itself when it is no reference type."""
    return DataType(dtype - REF_OFFSET if dtype > REF_OFFSET else dtype)


def make_ref(dtype: int) -> DataType:
    """The reference type of `dtype`."""
    return DataType(dtype if dtype > REF_OFFSET else dtype + REF_OFFSET)


def types_compatible(expected: int, actual: int) -> bool:
    """Whether an output of type `actual` may feed an input of type `expected`: equal, or a reference read by value."""
    return expected == actual or (actual > REF_OFFSET and expected == actual - REF_OFFSET)


def dtype_name(dtype: int) -> str:
    """TensorFlow's name of a type: "float", "int32", "bfloat16", "float_ref"; "INVALID" for 0."""
    return DataType(dtype).name.lower() if dtype else "INVALID"


def parse_dtype(name: str) -> DataType:
    """The type of that name; "float32", "float64" and "float16" are accepted for float, double and half.

    Raises InvalidArgumentError for an unknown name.
    """
    lowered = name.lower().removeprefix("dt_")
    if lowered not in _BY_NAME and lowered not in _ALIASES:
        raise InvalidArgumentError(f"{name!r} is no element type; write one such as float32, int64 or string")
    return _ALIASES.get(lowered) or _BY_NAME[lowered]


def numpy_dtype(dtype: int) -> np.dtype[Any]:
    """The numpy dtype of elements of `dtype` or its base type: object for string, resource and variant."""
    return _NUMPY[base_type(dtype)]


def from_numpy(source: np.dtype[Any] | Array) -> DataType:
    """The element type of a numpy dtype or array; text and object dtypes are strings.

    Raises InvalidArgumentError for dtypes that TensorFlow lacks (datetimes, records, long double).
    """
    dtype = source if isinstance(source, np.dtype) else source.dtype
    if dtype.kind in "SUO":
        return DataType.STRING
    known = _FROM_NUMPY.get(dtype)
    if known is None:
        raise InvalidArgumentError(f"numpy dtype {dtype} has no tensor element type; convert the array first")
    return known


@cache
def item_size(dtype: int) -> int:
    """Bytes per element in memory; 0 for string, resource and variant, whose size is not fixed."""
    base = base_type(dtype)
    return 0 if base in _OBJECT_TYPES else _NUMPY[base].itemsize


def always_on_host(dtype: int) -> bool:
    """Whether tensors of this type live in host memory on every kind of device: strings and resource handles."""
    return base_type(dtype) in (DataType.STRING, DataType.RESOURCE)
