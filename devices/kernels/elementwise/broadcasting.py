"""Broadcasting with TensorFlow's error for shapes that do not broadcast, in place of numpy's ValueError.

A call that succeeds costs one extra Python call and nothing else.
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
    """`function`, whose ValueError for shapes that do not broadcast becomes TensorFlow's error.

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
