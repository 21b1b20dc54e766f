"""The checks that many kernels make of their inputs, and the error of placeholders, which have none."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph.analysis.dims import shape_text
from ...graph.dtypes import Array, Shape, dtype_name


def require(condition: bool, message: str) -> None:
    """InvalidArgumentError with `message` unless `condition`; for checks whose message is made without a call."""
    if not condition:
        raise InvalidArgumentError(message)


def scalar_of(x: Array, what: str) -> int:
    """The value of a scalar; InvalidArgumentError for another rank; `what` is the input's name in the message."""
    if x.ndim != 0:
        raise InvalidArgumentError(f"{what} must be a scalar, not shape {shape_text(x.shape)}")
    return int(x)


def single_of(x: Array, what: str) -> Any:  # Any: the element may be of any type
    """The element of a tensor of any rank that has exactly one; InvalidArgumentError for another number of elements."""
    if x.size != 1:
        raise InvalidArgumentError(f"{what} must have one element, not {x.size}")
    return x.item()


def text_of(x: Array | bytes, what: str) -> bytes:
    """The value of a scalar of strings; InvalidArgumentError for another rank."""
    if isinstance(x, bytes):  # as which numpy may hand on a scalar of strings
        return x
    if np.ndim(x) != 0:
        raise InvalidArgumentError(f"{what} must be a scalar, not shape {shape_text(np.shape(x))}")
    return bytes(x.item())


def decoded_spec(text: bytes) -> str:
    """The text of a shape and slice; InvalidArgumentError for what is no text."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"the shape and slice {text!r} is no text") from None


def vector_of(x: Array, what: str) -> list[int]:
    """The values of a vector; InvalidArgumentError for another rank."""
    if x.ndim != 1:
        raise InvalidArgumentError(f"{what} must be a vector, not shape {shape_text(x.shape)}")
    values: list[int] = x.tolist()
    return values


def unfed(name: str, dtype: int, shape: Shape) -> InvalidArgumentError:
    """The error of a placeholder that runs, which it does only if it was not fed."""
    promise = f" and shape {shape_text(shape)}" if shape else ""
    return InvalidArgumentError(
        f"You must feed a value for placeholder tensor '{name}' with dtype {dtype_name(dtype)}{promise}"
    )
