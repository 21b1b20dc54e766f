"""Kernels of running sums, products and log-sum-exps along one axis.

`exclusive` shifts the neutral element in at the start, `reverse` starts from the end; sums and products round at every
step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel


def _scan(x: Array, axis: int, ufunc: np.ufunc, start: Any, exclusive: bool) -> Array:
    if exclusive:
        first = np.full(x.shape[:axis] + (1,) + x.shape[axis + 1 :], start, x.dtype)
        x = np.concatenate([first, x], axis)[(slice(None),) * axis + (slice(-1),)]
    return ufunc.accumulate(x, axis, x.dtype)


@kernel("Cumsum", "Cumprod", "CumulativeLogsumexp")
def scan(node: Construction) -> Kernel:
    """The running total along an axis."""
    exclusive, reverse = node.attrs["exclusive"], node.attrs["reverse"]
    ufunc, start = {
        "Cumsum": (np.add, 0),
        "Cumprod": (np.multiply, 1),
        "CumulativeLogsumexp": (np.logaddexp, -np.inf),
    }[node.op]

    def along(x: Array, axis: Array) -> Any:
        if axis.ndim != 0:
            raise InvalidArgumentError(f"ScanOp: axis must be a scalar, not {shape_text(axis.shape)}")
        at, rank = int(axis), x.ndim
        require(-rank <= at < rank, f"ScanOp: Expected scan axis in the range [{-rank}, {rank}), but got {at}")
        if reverse:
            return np.flip(_scan(np.flip(x, at), at % rank, ufunc, start, exclusive), at)
        return _scan(x, at % rank, ufunc, start, exclusive)

    return in_float32(along, node.output_types[0]) if ufunc is np.logaddexp else along
