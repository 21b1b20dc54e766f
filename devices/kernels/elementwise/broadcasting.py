"""Broadcasting with TensorFlow's error for shapes that do not broadcast, in place of numpy's ValueError.

Shapes whose result is larger than all operands may have a result that there is no memory for, which is checked where it
could be large. A call that succeeds costs one extra Python call and, for two arrays, the product of their sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..output_size import output_shape

SMALL = 1 << 20
"""elements of a result that always has memory"""
_ARRAY = np.ndarray


def incompatible(*values: Array) -> InvalidArgumentError:
    """The error for operands whose shapes do not broadcast."""
    return InvalidArgumentError(f"Incompatible shapes: {' vs. '.join(shape_text(value.shape) for value in values)}")


def check_result(*values: Array, is_test: bool = False) -> None:
    """Raises as `output_shape` for what operands broadcast to; it has their type, or truth values."""
    shape = np.broadcast_shapes(*[value.shape for value in values])
    output_shape(shape, np.dtype(np.bool_) if is_test else values[-1].dtype)


def broadcasting(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose ValueError for shapes that do not broadcast becomes TensorFlow's error.

    `function` must raise ValueError for no other reason.
    """

    def kernel(*values: Array) -> Any:
        try:
            if prod([value.size for value in values]) > SMALL:
                check_result(*values)
            return function(*values)
        except ValueError:
            raise incompatible(*values) from None

    return kernel


def broadcasting_binary(function: Callable[[Any, Any], Any], *, is_test: bool = False) -> Callable[[Any, Any], Any]:
    """`broadcasting` for exactly two operands, which Python calls faster; the results of a test are truth values.

    With a numpy scalar the result is as large as the other operand. To see its class takes a tenth of asking its size.
    """

    def kernel(x: Array, y: Array) -> Any:
        try:
            if x.__class__ is _ARRAY is y.__class__ and x.size * y.size > SMALL and x.shape != y.shape:
                check_result(x, y, is_test=is_test)
            return function(x, y)
        except ValueError:
            raise incompatible(x, y) from None

    return kernel
