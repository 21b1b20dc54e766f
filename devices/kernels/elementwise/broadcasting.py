"""Broadcasting as TensorFlow reports it: numpy's own rules with TensorFlow's error when two shapes clash.

Flows in: a function of two arrays or more that broadcasts as numpy does. Flows out: the same function, raising
InvalidArgumentError in place of ValueError. Always holds: the good case costs one extra Python call and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array


def incompatible(*values: Array) -> InvalidArgumentError:
    """The error for operands whose shapes do not broadcast."""
    return InvalidArgumentError(f"Incompatible shapes: {' vs. '.join(shape_text(value.shape) for value in values)}")


def broadcasting(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a clash of shapes, which numpy reports as ValueError, told in TensorFlow's words.

    `function` must raise ValueError for no other reason.
    """

    def kernel(*values: Array) -> Any:
        try:
            return function(*values)
        except ValueError:
            raise incompatible(*values) from None

    return kernel


def broadcasting_binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`broadcasting` for exactly two operands, which Python calls faster."""

    def kernel(x: Array, y: Array) -> Any:
        try:
            return function(x, y)
        except ValueError:
            raise incompatible(x, y) from None

    return kernel
