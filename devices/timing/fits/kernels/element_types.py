"""Types of the elements of products in serving: bytes of inputs and weights, and the units that multiply them.

    nvfp4            half a byte and an fp8 scale for 16 elements, both sides; units of fp4; 16-bit input is quantised
    int4_weights     16-bit inputs, weights of half a byte; units of bf16

Results are 16-bit in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .....errors import InvalidArgumentError
from .....graph.arrays import Floats
from ....spec import DeviceSpec
from ..products import bf16_peak


class ElementType(NamedTuple):
    """Bytes of an element with its share of scales, the family of rates, and whether a kernel quantises the input."""

    input_bytes: float
    weight_bytes: float
    family: str
    quantises: bool = False


NVFP4, MXFP4, MXFP8, INT4 = 1 / 2 + 1 / 16, 1 / 2 + 1 / 32, 1 + 1 / 32, 1 / 2 + 2 / 128
"""bytes with scales: a byte for 16 elements, a byte for 32, and two bytes for 128"""
RESULT_BYTES = 2
ELEMENT_TYPES: Mapping[str, ElementType] = {
    "bf16": ElementType(2, 2, "bf16"),
    "fp8": ElementType(1, 1, "fp8", True),
    "fp8_block": ElementType(1, 1, "fp8", True),
    "nvfp4": ElementType(NVFP4, NVFP4, "fp4", True),
    "int8": ElementType(1, 1, "int8"),
    "int8_weights": ElementType(2, 1, "bf16"),
    "int4_weights": ElementType(2, INT4, "bf16"),
    "w4a16_mxfp4": ElementType(2, MXFP4, "bf16"),
    "w4a8_mxfp4_mxfp8": ElementType(MXFP8, MXFP4, "fp8", True),
}


def rate_of(spec: DeviceSpec, dtype: str) -> float:
    """Operations/s of the units of a type; InvalidArgumentError where the device has none, with those that it has."""
    family = ELEMENT_TYPES[dtype].family
    if family == "bf16":
        return bf16_peak(spec) * spec.sustained_clock
    if family not in spec.peak_flops_per_s:
        has = ", ".join(spec.peak_flops_per_s)
        raise InvalidArgumentError(
            f"{spec.name} has no {family} units, which products in {dtype!r} need; it has {has}: choose a type of those"
        )
    return float(spec.sustained_flops_per_s(family))


def rates_of(spec: DeviceSpec, dtypes: Sequence[str]) -> Floats:
    """Operations/s of the units of each type; InvalidArgumentError as `rate_of`."""
    rates = {dtype: rate_of(spec, dtype) for dtype in dict.fromkeys(dtypes)}
    return np.array([rates[dtype] for dtype in dtypes])
