"""What debuggers put between the nodes of a graph: tensors passed on, and numbers about them.

Nothing is published to the places in `debug_urls`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ....errors import UnimplementedError
from ....graph.dtypes import Array, numpy_dtype
from ..half_types import is_half
from ..registry import Construction, Kernel, kernel, simple

for _op in ("DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3"):
    simple(_op, lambda x: x)


class _Counts(NamedTuple):
    """Masks of the elements of each sort."""

    nan: Array
    lowest: Array
    negative: Array
    zero: Array
    positive: Array
    highest: Array

    @classmethod
    def of(cls, x: Array, low: float = -np.inf, high: float = np.inf) -> _Counts:
        """By the sign, and apart those beyond the bounds, which are no numbers to count with."""
        nan, lowest, highest = np.isnan(x), x <= low, x >= high
        rest = ~(nan | lowest | highest)
        return cls(nan, lowest, rest & (x < 0), rest & (x == 0), rest & (x > 0), highest)


def _as_floats(x: Array) -> Array:
    """The elements as float64, in which comparisons with infinity are defined; complex numbers stay."""
    x = np.asarray(x)
    return x if x.dtype.kind == "c" else x.astype(np.float64)


@kernel("DebugNanCount")
def nan_count(node: Construction) -> Kernel:
    """The number of elements that are no numbers."""

    def count(x: Array) -> Array:
        x = np.asarray(x)
        return np.array([np.isnan(x).sum() if x.dtype.kind in "fc" or is_half(x.dtype) else 0], np.int64)

    return count


@kernel("DebugNumericSummary")
def numeric_summary(node: Construction) -> Kernel:
    """Counts of sorts of elements; least, greatest, mean and variance of the finite ones; type, rank and sizes."""
    low, high = float(node.attrs["lower_bound"]), float(node.attrs["upper_bound"])
    dtype = float(node.input_types[0].value)

    def summarise(x: Array) -> Array:
        values = _as_floats(x)
        counts = [float(mask.sum()) for mask in _Counts.of(values, low, high)]
        finite = values[np.isfinite(values)]
        least, greatest = finite.min(initial=np.inf), finite.max(initial=-np.inf)
        mean, variance = (finite.mean(), finite.var()) if finite.size else (np.nan, np.nan)
        return np.array(
            [1, values.size, *counts, least, greatest, mean, variance, dtype, values.ndim, *values.shape], np.float64
        )

    return summarise


_NUM_SIZES = 6
"""sizes of a tensor that the summary of its shape has room for"""


def _health(x: Array, dtype: int) -> list[float]:
    return [float(not np.isfinite(x).all())]


def _concise(x: Array, dtype: int) -> list[float]:
    counts = _Counts.of(x)
    return [x.size, *(float(mask.sum()) for mask in (counts.lowest, counts.highest, counts.nan))]


def _full(x: Array, dtype: int) -> list[float]:
    counts = _Counts.of(x)
    sorts = counts.lowest, counts.highest, counts.nan, counts.negative, counts.zero, counts.positive
    return [-1, dtype, x.ndim, x.size, *(float(mask.sum()) for mask in sorts)]


def _shape(x: Array, dtype: int) -> list[float]:
    sizes = x.shape[-_NUM_SIZES:]
    return [dtype, x.ndim, x.size, *sizes, *[0] * (_NUM_SIZES - len(sizes))]


_MODES: Mapping[int, Callable[[Array, int], list[float]]] = {2: _health, 3: _concise, 4: _full, 5: _shape}
_THREE_SLOTS = 8


@kernel("DebugNumericSummaryV2")
def numeric_summary_v2(node: Construction) -> Kernel:
    """What the mode of debugging asks for: behind the tensor's id whether all is finite, counts, or the shape.

    Mode 8 gives no id, but the infinities and NaN that there are, and zeros for the others.
    """
    mode, tensor_id = int(node.attrs["tensor_debug_mode"]), float(node.attrs["tensor_id"])
    dtype, result_type = node.input_types[0].value, numpy_dtype(node.output_types[0])

    def summarise(x: Array) -> Array:
        values = _as_floats(x)
        if mode == _THREE_SLOTS:
            found = (-np.inf, (values == -np.inf).any()), (np.inf, (values == np.inf).any())
            slots = [value if there else 0 for value, there in (*found, (np.nan, np.isnan(values).any()))]
            return np.array(slots, result_type)
        if mode not in _MODES:
            raise UnimplementedError(f"Unimplemented tensor debug mode: {mode}")
        return np.array([tensor_id, *_MODES[mode](values, dtype)], result_type)

    return summarise
