"""Which ops may be computed into the buffer of an input, and by what.

Flows in: the properties of a node. Flows out: a function that computes as the kernel does, bit for bit, but stores the
result where `out` says. Always holds: the op works element by element and its output has the element type of its
inputs, so an element is read before it is overwritten; half types, which go through float32, have no such function.

A fresh result of a megabyte costs two to three times what the addition itself does, most of it page faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...graph.dtypes import Array, DataType, base_type
from .nn.bias_check import check_bias
from .nn.rectifier import rectified

if TYPE_CHECKING:
    from ...graph.ops.properties import NodeProperties

Into = Callable[..., Array]
"""takes the inputs of a node and `out`, an array of the shape and type of the result; ValueError if it does not fit"""


def _bias_add(value: Array, bias: Array, out: Array) -> Array:
    check_bias(value, bias, channel_first=False)
    result: Array = np.add(value, bias, out=out)
    return result


_FUNCTIONS: Mapping[str, Into] = {
    "Add": np.add,
    "AddV2": np.add,
    "BiasAdd": _bias_add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "RealDiv": np.true_divide,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Neg": np.negative,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Relu": rectified,
}
_TYPES = frozenset({DataType.FLOAT, DataType.DOUBLE})


def into(properties: NodeProperties) -> Into | None:
    """The function for nodes of this kind, None where there is none: channels, for one, have to be the last axis."""
    function = _FUNCTIONS.get(properties.op)
    if properties.attrs.get("data_format") == b"NCHW":
        return None
    types = {base_type(t) for t in (*properties.input_types, *properties.output_types)}
    return function if function is not None and len(types) == 1 and types <= _TYPES else None
