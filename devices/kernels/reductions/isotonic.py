"""Isotonic regression: the falling sequence that is nearest to each row (pool adjacent violators, Ayer et al., 1955).

[3, 1, 2, 5, 4]    two runs, [3] and [1, 2, 5, 4] with mean 3    [3, 3, 3, 3, 3]
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel


def falling_means(row: list[float]) -> tuple[list[float], list[int]]:
    """Means and lengths of the runs whose means fall; a run joins the one before it where its mean is higher."""
    totals: list[float] = []
    lengths: list[int] = []
    for value in row:
        total, length = value, 1
        while totals and total * lengths[-1] > totals[-1] * length:
            total, length = total + totals.pop(), length + lengths.pop()
        totals.append(total)
        lengths.append(length)
    return [total / length for total, length in zip(totals, lengths, strict=True)], lengths


@kernel("IsotonicRegression")
def isotonic_regression(node: Construction) -> Kernel:
    """The fitted rows (last axis), and the number of the run that each element belongs to."""
    dtype = numpy_dtype(node.output_types[0])

    def fit(x: Array) -> tuple[Array, Array]:
        require(x.ndim >= 1, "Input must have at least one dimension")
        fitted, runs = np.empty(x.shape, dtype), np.empty(x.shape, np.int32)
        size = x.shape[-1]
        if not x.size:
            return fitted, runs
        for row, values, numbers in zip(
            x.reshape(-1, size), fitted.reshape(-1, size), runs.reshape(-1, size), strict=True
        ):
            means, lengths = falling_means(row.astype(np.float64).tolist())
            values[:], numbers[:] = np.repeat(means, lengths), np.repeat(np.arange(len(means)), lengths)
        return fitted, runs

    return fit
