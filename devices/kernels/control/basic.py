"""Kernels of constants, placeholders, pass-through ops and assertions.

Values are passed on without a copy; a constant is decoded once, when its kernel is made.
"""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ..checks import unfed
from ..registry import Construction, Kernel, kernel, simple
from ..strings.string_format import escaped, number_text

_WITH_TRUTH = {
    *(DataType.BOOL, DataType.FLOAT, DataType.DOUBLE, DataType.STRING),
    *(DataType.UINT8, DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64),
}


def _same(x: Array) -> Array:
    return x


kernel(
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "DeepCopy",
    "GuaranteeConst",
    "PlaceholderWithDefault",
)(lambda node: _same)

simple("NoOp", lambda: None)
simple("ControlTrigger", lambda: None)


@kernel("IdentityN")
def identity_n(node: Construction) -> Kernel:
    """All inputs, in order."""
    if len(node.output_types) == 1:
        return _same
    return lambda *values: values or None


@kernel("ToBool")
def to_bool(node: Construction) -> Kernel:
    """Of a scalar whether it is not zero, or not empty if it is a string; of another tensor whether it has elements."""
    dtype = node.input_types[0]

    def truth(x: Array) -> np.bool_:
        if x.ndim:
            return np.bool_(x.size > 0)
        if dtype not in _WITH_TRUTH:
            raise InvalidArgumentError(f"{dtype_name(dtype)} cannot be converted to a boolean")
        return np.bool_(x.item())

    return truth


@kernel("Const", "HostConst")
def const(node: Construction) -> Kernel:
    """The node's value; a scalar becomes a numpy scalar, which later kernels handle fastest."""
    value: Array = node.attrs["value"]
    declared = numpy_dtype(node.output_types[0])
    if value.dtype != declared:
        raise InvalidArgumentError(f"Inconsistency between attr 'dtype' {declared} and the value's type {value.dtype}")
    if value.ndim == 0 and declared.kind != "O":
        scalar = value[()]
        return lambda: scalar
    return lambda: value


@kernel("Placeholder", "PlaceholderV2")
def placeholder(node: Construction) -> Kernel:
    """Raises InvalidArgumentError: a placeholder only runs if it was not fed."""

    def not_fed() -> None:
        raise unfed(node.name, node.output_types[0], node.attrs.get("shape"))

    return not_fed


@kernel("EnsureShape")
def ensure_shape(node: Construction) -> Kernel:
    """The input, if its shape fits the attr; unknown sizes in the attr fit all."""
    expected = node.attrs["shape"]
    if expected is None:
        return _same

    def check(x: Array) -> Array:
        if x.ndim != len(expected) or any(e not in (None, s) for e, s in zip(expected, x.shape, strict=True)):
            raise InvalidArgumentError(
                f"Shape of tensor input {shape_text(x.shape)} is not compatible with expected shape "
                f"{shape_text(expected)}."
            )
        return x

    return check


def element_text(value: Any) -> str:  # an element of any dtype
    """One element as TensorFlow prints it in summaries: booleans as 0 and 1, floats with their shortest digits.

    Bytes that are no UTF-8 become surrogates, so that `encode("utf-8", "surrogateescape")` gives them back.
    """
    if isinstance(value, bytes):
        return escaped(value.decode("utf-8", "surrogateescape"))
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (np.floating, ml_dtypes.bfloat16)):
        if np.isnan(value) and np.signbit(value):
            return "-nan"
        return number_text(value, 15, 17) if isinstance(value, np.float64) else number_text(np.float32(value), 6, 9)
    return "?" if isinstance(value, (complex, np.complexfloating)) else str(value)


def summary(x: Array, most: int) -> str:
    """The first `most` elements in nested brackets, "..." where some were left out: `[0 1 2][3 4...]...`."""
    if not most and x.dtype == bool:
        return ""  # not "...", in TensorFlow too
    most = x.size if most < 0 else min(most, x.size)
    if x.ndim <= 1 or x.dtype.kind == "c":  # elements that cannot be printed come without rows
        flat = np.reshape(x, -1)
        return " ".join(element_text(v) for v in flat[:most]) + ("..." if most < x.size else "")
    return _rows(x, most) + ("..." if most < x.size else "")


def _rows(x: Array, left: int) -> str:
    """The first `left` elements of at least two axes, a pair of brackets around each row."""
    size = prod(x.shape[1:])
    begun = -(-left // size) if size else 0
    if x.ndim == 2:
        return "".join(f"[{summary(row, left - i * size)}]" for i, row in enumerate(x[:begun]))
    return "".join(f"[{_rows(row, min(left - i * size, size))}]" for i, row in enumerate(x[:begun]))


@kernel("Assert")
def assertion(node: Construction) -> Kernel:
    """Raises InvalidArgumentError with the data's first elements unless the condition holds."""
    most = node.attrs["summarize"]

    def check(condition: Array, *data: Array) -> None:
        if condition.ndim:
            raise InvalidArgumentError(f"In[0] should be a scalar: {shape_text(condition.shape)}")
        if not condition:
            text = " ".join(f"[{summary(x, most)}]" for x in data).encode("utf-8", "surrogateescape")
            raise InvalidArgumentError(f"assertion failed: {text.decode('utf-8', 'backslashreplace')}")

    return check
