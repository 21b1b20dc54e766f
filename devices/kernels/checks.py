"""The check that most kernels make of their inputs, and the error of placeholders, which have none."""

from __future__ import annotations

from ...errors import InvalidArgumentError
from ...graph.analysis.dims import shape_text
from ...graph.dtypes import Shape, dtype_name


def require(condition: bool, message: str) -> None:
    """InvalidArgumentError with `message` unless `condition`; for checks whose message is cheap to make."""
    if not condition:
        raise InvalidArgumentError(message)


def unfed(name: str, dtype: int, shape: Shape) -> InvalidArgumentError:
    """The error of a placeholder that runs, which it does only if it was not fed."""
    promise = f" and shape {shape_text(shape)}" if shape else ""
    return InvalidArgumentError(
        f"You must feed a value for placeholder tensor '{name}' with dtype {dtype_name(dtype)}{promise}"
    )
