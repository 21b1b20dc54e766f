"""Kernels of division and remainder, rounded down or towards zero.

A zero divisor of integers is an error if anything is divided by it; the smallest integer over -1 wraps around. Floats
follow IEEE arithmetic in their own precision: the quotient is rounded before it is floored or cut.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import InternalError, InvalidArgumentError, PartitaError
from ....graph.dtypes import Array, numpy_dtype
from ..registry import Construction, Kernel, kernel, simple
from .broadcasting import broadcasting_binary

Binary = Callable[[Any, Any], Any]


def cut_quotient(x: Any, y: Any) -> Any:
    """x / y of integers, rounded towards zero: the floor, plus one if the exact quotient is negative and not whole."""
    floor = np.floor_divide(x, y)
    inexact = x - floor * y != 0
    return floor + (inexact & ((x < 0) != (y < 0)))


_OF_INTEGERS: dict[str, Binary] = {
    "FloorDiv": operator.floordiv,
    "Div": cut_quotient,
    "TruncateDiv": cut_quotient,
    "FloorMod": operator.mod,
    "Mod": np.fmod,
    "TruncateMod": np.fmod,
}
_OF_FLOATS: dict[str, Binary] = {
    "FloorDiv": lambda x, y: np.floor(x / y),
    "Div": operator.truediv,
    "TruncateDiv": lambda x, y: np.trunc(x / y),
    "FloorMod": np.remainder,
    "Mod": np.fmod,
    "TruncateMod": np.fmod,
}


def _zero_divisor(op: str) -> PartitaError:
    if op.startswith("Truncate"):  # in TensorFlow these two ops cannot report the error
        return InternalError("Unexpected error in binary operator (only integer div and mod should have errors)")
    return InvalidArgumentError("Integer division by zero")


simple("RealDiv", broadcasting_binary(operator.truediv))


@kernel(*_OF_INTEGERS)
def divide(node: Construction) -> Kernel:
    """Quotient or remainder of x by y."""
    if numpy_dtype(node.output_types[0]).kind not in "iu":
        return broadcasting_binary(_OF_FLOATS[node.op])
    function = _OF_INTEGERS[node.op]

    def checked(x: Array, y: Array) -> Any:
        result = function(x, y)  # broadcast first, so that the error for shapes takes precedence
        if not (y if y.ndim == 0 else y.all()) and result.size:
            raise _zero_divisor(node.op)
        return result

    return broadcasting_binary(checked)
