"""Kernels that write tensors as text (StringFormat) or as the bytes of a TensorProto, and parse those bytes.

Text is handled as Latin-1, so that every byte is kept. A number has the fewer digits of two counts that identify it:
six or nine for float32, fifteen or seventeen for float64.

    [[0 1 ... 8 9]        summarize=2: as many entries at both ends of each axis
     ...
     [90 91 ... 98 99]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ....graph.tensor import numpy_to_tensor, parse_tensor as parse_tensor_proto, tensor_to_numpy
from ..half_types import is_half
from ..registry import Construction, Kernel, kernel
from .each_string import strings

_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def escaped(text: str) -> str:
    """As C would write it: control characters as octal numbers; characters above ASCII stay."""
    return "".join(_ESCAPES.get(ord(c)) or (f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c) for c in text)


def _quoted(value: bytes) -> str:
    return f'"{escaped(value.decode("latin-1"))}"'


def number_text(value: Any, short: int, long: int) -> str:  # a numpy float
    """With `short` digits if they identify the number, else with `long`."""
    if not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    text = f"{float(value):.{short}g}"
    return text if type(value)(float(text)) == value else f"{float(value):.{long}g}"


def _writer(dtype: np.dtype[Any]) -> Callable[[Any], str]:  # numpy's dtypes are generic
    if dtype.hasobject:
        return _quoted
    if is_half(dtype) or dtype == np.float32:
        return lambda value: number_text(np.float32(value), 6, 9)
    if dtype == np.float64:
        return lambda value: number_text(value, 15, 17)
    return _unknown if dtype.kind not in "iub" else lambda value: str(int(value))


def _unknown(_: Any) -> str:  # a value of a type that TensorFlow cannot print
    return "?"


def _break(axis: int, rank: int) -> str:
    return " " if axis == rank - 1 else "\n" * (rank - 1 - axis) + " " * (axis + 1)


def _written(x: Array, axis: int, rank: int, ends: int, write: Callable[[Any], str]) -> str:
    if axis == rank:
        return write(x if not isinstance(x, np.ndarray) or x.ndim else x[()])
    count = x.shape[0]
    shown = [*range(min(ends, count)), *range(max(ends, count - ends), count)]
    parts = [_written(x[i], axis + 1, rank, ends, write) for i in shown]
    if count > 2 * ends:
        parts.insert(ends, "..." if ends else _break(axis, rank) + "...")
    return f"[{_break(axis, rank).join(parts)}]"


def _in_words(x: Array, summarize: int, write: Callable[[Any], str]) -> str:
    limit = x.size if summarize < 0 else min(summarize, x.size)
    if x.ndim == 0:
        return write(x[()]) if limit else "..."
    if write is _unknown:  # printed without rows
        return f"[{' '.join('?' * limit)}{'...' if limit < x.size else ''}]"
    return _written(x, 0, x.ndim, limit, write)


@kernel("StringFormat")
def string_format(node: Construction) -> Kernel:
    """The template with its placeholders replaced in turn."""
    summarize, placeholder = node.attrs["summarize"], node.attrs["placeholder"].decode("latin-1")
    pieces = node.attrs["template"].decode("latin-1").split(placeholder)
    if len(pieces) - 1 != len(node.input_types):
        raise InvalidArgumentError(
            f"num placeholders in template and num inputs must match: {len(pieces) - 1} vs. {len(node.input_types)}"
        )
    writers = [_writer(numpy_dtype(dtype)) for dtype in node.input_types]

    def run(*inputs: Array) -> Array:
        text = pieces[0]
        for value, write, piece in zip(map(np.asarray, inputs), writers, pieces[1:], strict=True):
            text += _in_words(value, summarize, write) + piece
        return strings([text.encode("latin-1")], ())

    return run


@kernel("SerializeTensor")
def serialize_tensor(node: Construction) -> Kernel:
    """A TensorProto that holds the elements' bytes as they are in memory; strings as a list."""
    dtype = node.input_types[0]

    def run(x: Array) -> Array:
        return strings([numpy_to_tensor(x, dtype).SerializeToString(deterministic=True)], ())

    return run


@kernel("ParseTensor")
def parse_tensor(node: Construction) -> Kernel:
    """The tensor in a serialized TensorProto, whose type must be the declared one."""
    dtype = node.output_types[0]

    def run(serialized: Array) -> Array:
        if np.ndim(serialized):
            raise InvalidArgumentError(
                f"Expected `serialized` to be a scalar, got shape: {shape_text(np.shape(serialized))}"
            )
        message = parse_tensor_proto(np.asarray(serialized).item())
        actual = DataType(message.dtype)
        if actual != dtype:
            names = f"({dtype_name(actual)}) and dtype ({dtype_name(dtype)})"
            raise InvalidArgumentError(f"Type mismatch between parsed tensor {names}")
        return tensor_to_numpy(message)

    return run
