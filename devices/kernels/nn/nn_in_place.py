"""Ops of neural networks that may be computed into the buffer of an operand."""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array
from ..in_place import in_place
from .bias_check import check_bias
from .rectifier import rectified


def bias_add(value: Array, bias: Array, out: Array) -> Array:
    """The sum, stored in `out`; channels are the last axis."""
    check_bias(value, bias, channel_first=False)
    result: Array = np.add(value, bias, out=out)
    return result


in_place("BiasAdd", bias_add)
in_place("Relu", rectified)
