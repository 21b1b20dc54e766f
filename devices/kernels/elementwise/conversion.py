"""The Cast kernel: every element converted to another type.

A value that fits the target type is exact or rounded once; for any other the result is TensorFlow's on an x86 CPU.
Integers wrap. Floats are cut towards zero; beyond the range of an integer type, elements in whole vector registers
saturate and the remaining ones at the end wrap, both by way of 32 bits.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ....errors import UnimplementedError
from ....graph.dtypes import Array, dtype_name, numpy_dtype
from ..half_types import BFLOAT16
from ..registry import Construction, Kernel, kernel

_E5M2, _E4M3 = np.dtype(ml_dtypes.float8_e5m2), np.dtype(ml_dtypes.float8_e4m3fn)
_FLOAT8 = frozenset({_E5M2, _E4M3})
_INT4 = frozenset(map(np.dtype, (ml_dtypes.int4, ml_dtypes.uint4)))
_MANTISSA_BITS = {
    np.dtype(np.float64): 52,
    np.dtype(np.float32): 23,
    np.dtype(np.float16): 10,
    BFLOAT16: 7,
    _E4M3: 3,
    _E5M2: 2,
}
_FLOATS = _MANTISSA_BITS.keys() - _FLOAT8  # types that convert to integers by vector registers

_REGISTER = {  # elements of 8 or 16 bits per register, converted from this type; of 32 bits always 8
    np.dtype(np.float16): 16,
    BFLOAT16: 8,
    np.dtype(np.float32): 32,
    np.dtype(np.float64): 16,
}
_WORDS = 8  # elements of 32 bits per register
_COMPLEX_ONE_BY_ONE = {(8, 1), (8, 2), (16, 4)}  # sizes of complex numbers and integers that never fill registers


@kernel("Cast", "_HostCast")
def cast(node: Construction) -> Kernel:
    """Elements converted to DstT; with Truncate, floats lose surplus bits of the mantissa unrounded."""
    source, target = numpy_dtype(node.input_types[0]), numpy_dtype(node.output_types[0])
    if not _supported(source, target):
        names = f"{dtype_name(node.input_types[0])} to {dtype_name(node.output_types[0])}"
        raise UnimplementedError(f"Cast {names} is not supported")
    if source == target:
        return lambda x: x
    if node.attrs["Truncate"] and _mantissa_bits(source) > _mantissa_bits(target) > 0:
        return _truncating(source, target)
    if source.kind == "c" and target.kind != "c":
        if (source.itemsize, target.itemsize) in _COMPLEX_ONE_BY_ONE:
            return lambda x: x.real.astype(target)
        of_real_parts = _converting(np.empty(0, source).real.dtype, target)
        return lambda x: of_real_parts(x.real)
    if source in _FLOAT8 and target.kind in "iu":
        return lambda x: x.astype(np.float32).astype(target)
    if source in _INT4 and target in _INT4:
        return lambda x: x.astype(np.int8).astype(target)
    return _converting(source, target)


def _supported(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Four-bit integers convert from and to integers only, and floats of eight bits are made of floats only."""
    if source.kind == "O" or target.kind == "O":
        return source == target
    if source in _INT4 or target in _INT4:
        return all(dtype.kind in "iu" or dtype in _INT4 for dtype in (source, target))
    return target not in _FLOAT8 or source in _MANTISSA_BITS


def _mantissa_bits(dtype: np.dtype[Any]) -> int:
    return _MANTISSA_BITS.get(dtype, 0)


def _truncating(source: np.dtype[Any], target: np.dtype[Any]) -> Kernel:
    """Clears the mantissa bits that `target` lacks, after which the conversion has nothing to round."""
    bits = np.dtype(f"u{source.itemsize}")
    surplus = _mantissa_bits(source) - _mantissa_bits(target)
    mask = bits.type(np.iinfo(bits).max >> surplus << surplus)
    return lambda x: (x.view(bits) & mask).view(source).astype(target)


def _converting(source: np.dtype[Any], target: np.dtype[Any]) -> Kernel:
    correct = _CORRECTED.get(target) if source in _FLOATS else None
    if correct is None:
        return lambda x: x.astype(target)
    return lambda x: correct(x, x.astype(target))


def _corrected_small(x: Array, wrapped: Array) -> Array:
    """`wrapped`, the conversion to 8 or 16 bits, with the elements in whole registers saturated instead."""
    whole = x.size - x.size % _REGISTER[x.dtype]
    if not whole:
        return wrapped
    words = x.reshape(-1)[:whole].astype(np.int32)  # the least integer if the value is out of range
    limits = np.iinfo(wrapped.dtype)
    if wrapped.dtype == np.uint8 and x.dtype in (np.float16, np.float64):  # packed to 16 unsigned bits, read as signed
        words = words.clip(0, 0xFFFF).astype(np.int16)
    result = wrapped.reshape(-1).copy()
    result[:whole] = words.clip(limits.min, limits.max)
    return result.reshape(wrapped.shape)


def _corrected_uint32(x: Array, wrapped: Array) -> Array:
    """`wrapped`, with 2^31 for elements in whole registers that are out of the 32-bit ranges."""
    whole = x.size - x.size % _WORDS
    if not whole:
        return wrapped
    head = x.reshape(-1)[:whole].astype(np.float64)
    fits = (head > -(2.0**31) - 1) & (head < 2.0**32)
    if fits.all():
        return wrapped
    result = wrapped.reshape(-1).copy()
    result[:whole][~fits] = 2**31
    return result.reshape(wrapped.shape)


def _corrected_uint64(x: Array, wrapped: Array) -> Array:
    """`wrapped` with 2^63 for elements that are too large."""
    return np.where(x.astype(np.float64) >= 2.0**64, np.uint64(2**63), wrapped)


_CORRECTED = dict.fromkeys(map(np.dtype, (np.int8, np.uint8, np.int16, np.uint16)), _corrected_small) | {
    np.dtype(np.uint32): _corrected_uint32,
    np.dtype(np.uint64): _corrected_uint64,
}
