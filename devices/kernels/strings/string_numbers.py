"""Kernels between strings and numbers: parsing, printing, raw bytes, base64.

The error for a string that cannot be parsed shows the string.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, base_type, dtype_name, numpy_dtype
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel, simple
from .each_string import each, measured, strings

_FLOAT = re.compile(
    rb"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan(\(\w*\))?)\s*", re.IGNORECASE
)
_HEXADECIMAL = re.compile(rb"\s*[+-]?0x([\da-f]+\.?[\da-f]*|\.[\da-f]+)(p[+-]?\d+)?\s*", re.IGNORECASE)
_SIGNED = re.compile(rb"\s*[+-]?\d+\s*")
_UNSIGNED = re.compile(rb"\s*\+?\d+\s*")


def _spelled_float(value: bytes) -> float | None:
    if _HEXADECIMAL.fullmatch(value):
        return float.fromhex(value.decode())
    return float(value.partition(b"(")[0]) if _FLOAT.fullmatch(value) else None


def _spelled_integer(value: bytes, limits: np.iinfo[Any]) -> int | None:
    if not (_SIGNED if limits.min else _UNSIGNED).fullmatch(value):
        return None
    number = int(value)
    return number if limits.min <= number <= limits.max else None


_WITH_NOTATION = frozenset(
    {
        DataType.FLOAT,
        DataType.DOUBLE,
        DataType.HALF,
        DataType.BFLOAT16,
        DataType.COMPLEX64,
        DataType.COMPLEX128,
    }
)


@kernel("StringToNumber")
def string_to_number(node: Construction) -> Kernel:
    """The number that each string represents, in decimal."""
    dtype = numpy_dtype(node.output_types[0])
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None

    def parse(value: bytes) -> float:
        number = _spelled_float(value) if limits is None else _spelled_integer(value, limits)
        if number is None:
            shown = value.decode("utf-8", "backslashreplace")
            raise InvalidArgumentError(f"StringToNumberOp could not correctly convert string: {shown}")
        return number

    return lambda x: measured(parse, x, dtype)


def _check_format(attrs: Mapping[str, Any], dtype: DataType) -> None:  # decoded attrs: types depend on the attr
    notation = attrs["scientific"] or attrs["shortest"]
    if dtype not in _WITH_NOTATION and dtype != DataType.STRING:
        if notation:
            raise InvalidArgumentError(f"scientific and shortest format not supported for datatype {dtype_name(dtype)}")
        if attrs["precision"] > -1:
            raise InvalidArgumentError(f"precision not supported for datatype {dtype_name(dtype)}")
    if attrs["scientific"] and attrs["shortest"]:
        raise InvalidArgumentError("Cannot select both scientific and shortest notation")
    fill = attrs["fill"].decode()
    if len(fill) > 1:
        raise InvalidArgumentError("Fill string must be one or fewer characters")
    if fill not in ("", " ", "0", "+", "-"):
        raise InvalidArgumentError(f'Fill argument not supported: "{fill}"')


def _form(attrs: Mapping[str, Any], dtype: DataType) -> str:  # decoded attrs: types depend on the attr
    """The printf format that the attrs of AsString ask for."""
    width, fill = attrs["width"], attrs["fill"].decode()
    size = f"{width}" if width > -1 else ""
    if dtype == DataType.STRING:
        return f"%{'-' if fill == '-' else ''}{size}s"
    if dtype not in _WITH_NOTATION:
        unsigned = numpy_dtype(dtype).kind == "u"
        return f"%{'' if unsigned and fill in '+ ' else fill}{size}d"
    precision = f".{attrs['precision']}" if attrs["precision"] > -1 else ""
    return f"%{fill}{size}{precision}{'e' if attrs['scientific'] else 'g' if attrs['shortest'] else 'f'}"


@kernel("AsString")
def as_string(node: Construction) -> Kernel:
    """Every element printed, as by C's printf."""
    dtype = base_type(node.input_types[0])
    _check_format(node.attrs, dtype)
    if dtype == DataType.BOOL:
        return lambda x: strings((b"true" if value else b"false" for value in x.reshape(-1).tolist()), x.shape)
    form = _form(node.attrs, dtype)
    unpadded = form.replace("%0", "%", 1)  # printf never pads NaN and infinities with zeros

    def printed(value: float) -> str:
        return (form if isfinite(value) else unpadded) % value

    if dtype == DataType.STRING:
        text = form.encode()
        return lambda x: each(lambda value: text % value, x)
    if dtype in (DataType.COMPLEX64, DataType.COMPLEX128):
        pairs = "({},{})".format
        return lambda x: strings(
            (pairs(printed(v.real), printed(v.imag)).encode() for v in x.reshape(-1).tolist()), x.shape
        )
    return lambda x: strings((printed(value).encode() for value in x.reshape(-1).tolist()), x.shape)


@kernel("EncodeBase64")
def encode_base64(node: Construction) -> Kernel:
    """Web-safe base64, padded with `=` where the attr says so."""
    if node.attrs["pad"]:
        return lambda x: each(urlsafe_b64encode, x)
    return lambda x: each(lambda value: urlsafe_b64encode(value).rstrip(b"="), x)


_BASE64 = re.compile(rb"[A-Za-z0-9_-]*")


def _from_base64(value: bytes) -> bytes:
    if len(value) % 4 == 1:
        raise InvalidArgumentError("Base64 string length cannot be 1 modulo 4.")
    padding = len(value) - len(value.rstrip(b"=")) if len(value) % 4 == 0 else 0
    bare = value[: len(value) - min(padding, 2)]
    if not _BASE64.fullmatch(bare):
        raise InvalidArgumentError("Invalid character found in base64.")
    return urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))


simple("DecodeBase64", lambda x: each(_from_base64, x))


@kernel("DecodeRaw")
def decode_raw(node: Construction) -> Kernel:
    """The bytes of each string read as numbers, along a new last axis."""
    dtype = numpy_dtype(node.output_types[0])
    swapped = not node.attrs["little_endian"] and dtype.itemsize > 1

    def run(x: Array) -> Array:
        values = x.reshape(-1).tolist()
        if not values:
            return np.empty((*x.shape, 0), dtype)
        size = len(values[0])
        for i, value in enumerate(values):
            if len(value) != size:
                raise InvalidArgumentError(
                    "DecodeRaw requires input strings to all be the same size, "
                    f"but element {i} has size {size} != {len(value)}"
                )
        if size % dtype.itemsize:
            raise InvalidArgumentError(
                f"Input to DecodeRaw has length {size} that is not a multiple of {dtype.itemsize}, "
                f"the size of {dtype_name(node.output_types[0])}"
            )
        result = np.frombuffer(b"".join(values), dtype).reshape(*x.shape, size // dtype.itemsize)
        return result.byteswap() if swapped else result

    return run


@kernel("DecodePaddedRaw")
def decode_padded_raw(node: Construction) -> Kernel:
    """As DecodeRaw, with every string cut or filled up with zero bytes to one length."""
    dtype = numpy_dtype(node.output_types[0])
    swapped = not node.attrs["little_endian"] and dtype.itemsize > 1

    def run(x: Array, fixed_length: Array) -> Array:
        if fixed_length.ndim != 0:
            raise InvalidArgumentError(f"k must be scalar, got shape {shape_text(fixed_length.shape)}")
        size = int(fixed_length)
        if size <= 0:
            raise InvalidArgumentError(f"fixed_length ({size}) must be greater than zero.")
        if size % dtype.itemsize:
            raise InvalidArgumentError(
                f"fixed_length ({size}) must be a multiple of the size of out_type ({dtype.itemsize})"
            )
        shape = output_shape((*x.shape, size // dtype.itemsize), dtype)
        values = b"".join(value[:size].ljust(size, b"\0") for value in x.reshape(-1).tolist())
        result = np.frombuffer(values, dtype).reshape(shape)
        return result.byteswap() if swapped else result

    return run
