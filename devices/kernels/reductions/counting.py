"""Kernels that count values into bins: Bincount, DenseBincount, HistogramFixedWidth.

Bincount ignores values beyond the last bin; a histogram counts them in the outermost bin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel


def _count(values: Array, size: int, weights: Array | None, binary: bool, dtype: np.dtype[Any]) -> Array:
    """The bins of one vector of values >= 0."""
    output_shape((size,), dtype)
    inside = values < size
    kept = values[inside]
    if weights is not None and not binary:
        result = np.zeros(size, dtype)
        np.add.at(result, kept, weights[inside])
        return result
    counts = np.bincount(kept, minlength=size)
    return (counts > 0).astype(dtype) if binary else counts.astype(dtype)


def _checked_size(values: Array, size: Array) -> int:
    """The number of bins; InvalidArgumentError for none, and for negative values."""
    require(size.ndim == 0, f"Shape must be rank 0 but is rank {size.ndim}")
    bins = int(size)
    require(bins >= 0, f"size ({bins}) must be non-negative")
    require(not values.size or bool(values.min() >= 0), "Input arr must be non-negative!")
    return bins


@kernel("Bincount")
def bincount(node: Construction) -> Kernel:
    """How often each of 0 .. size-1 occurs in a tensor of any rank, or the sums of the weights there."""
    dtype = numpy_dtype(node.output_types[0])

    def counted(values: Array, size: Array, weights: Array) -> Array:
        bins = _checked_size(values, size)
        weighted = weights.size > 0
        if weighted and weights.shape != values.shape:
            raise InvalidArgumentError("Input indices and weights must have the same size.")
        flat_weights = weights.reshape(-1) if weighted else None
        return _count(values.reshape(-1), bins, flat_weights, False, dtype)

    return counted


@kernel("DenseBincount")
def dense_bincount(node: Construction) -> Kernel:
    """Bincount of a vector, or of each row of a matrix; with binary_output, whether a value occurs at all."""
    dtype, binary = numpy_dtype(node.output_types[0]), node.attrs["binary_output"]

    def counted(values: Array, size: Array, weights: Array) -> Array:
        bins = _checked_size(values, size)
        require(values.ndim <= 2, f"Shape must be at most rank 2 but is rank {values.ndim}")
        weighted = weights.size > 0
        if weighted and weights.shape != values.shape:
            raise InvalidArgumentError(
                "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all "
                f"weights equal to 1. Received {shape_text(weights.shape)}"
            )
        if values.ndim < 2:
            return _count(values.reshape(-1), bins, weights.reshape(-1) if weighted else None, binary, dtype)
        result = np.zeros(output_shape((len(values), bins), dtype), dtype)
        for i, row in enumerate(values):
            result[i] = _count(row, bins, weights[i] if weighted else None, binary, dtype)
        return result

    return counted


@kernel("HistogramFixedWidth")
def histogram(node: Construction) -> Kernel:
    """The number of values in each of nbins equal parts of value_range; values outside count in the first or last."""
    dtype = numpy_dtype(node.output_types[0])

    def counted(values: Array, value_range: Array, nbins: Array) -> Array:
        require(value_range.shape == (2,), "value_range should be a vector of 2 elements.")
        low, high = value_range
        if not low < high:
            raise InvalidArgumentError(
                f"value_range should satisfy value_range[0] < value_range[1], but got '[{low:g}, {high:g}]'"
            )
        require(nbins.ndim == 0, "nbins should be a scalar.")
        bins = int(nbins)
        require(bins > 0, f"nbins should be a positive number, but got '{bins}'")
        output_shape((bins,), dtype)
        wide = values.reshape(-1).astype(np.float64)
        require(not np.isnan(wide).any(), "Histogram values must not contain NaN")
        step = (float(high) - float(low)) / bins
        index = np.clip((wide - float(low)) / step, 0, bins - 1).astype(np.int64)
        return np.bincount(index, minlength=bins).astype(dtype)

    return counted
