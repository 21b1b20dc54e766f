"""Normalisation of integers that stand for the numbers of a range, by way of the floats they stand for."""

from __future__ import annotations

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .ranges import Range, Ranged, as_floats, as_integers, range_of


@kernel("QuantizedInstanceNorm")
def instance_norm(node: Construction) -> Kernel:
    """Each channel of each image to mean 0 and variance 1, in a given range or in that of the numbers."""
    epsilon = np.float32(node.attrs["variance_epsilon"])
    given = Range(np.float32(node.attrs["given_y_min"]), np.float32(node.attrs["given_y_max"]))
    is_given, least = bool(node.attrs["output_range_given"]), np.float32(node.attrs["min_separation"])
    require(not is_given or bool(given.low < given.high), f"given_y_min must be less than given_y_max: {given}")

    def run(x: Array, low: Array, high: Array) -> Ranged:
        require(x.ndim == 4, f"Input must be 4 dimensional: {shape_text(x.shape)}")
        floats = as_floats(x, range_of(low, high))
        count = max(1, floats.shape[1] * floats.shape[2])
        centred = floats - floats.sum((1, 2), np.float64, keepdims=True) / count
        variance = np.square(centred).sum((1, 2), keepdims=True) / count
        normal = (centred / np.sqrt(variance + epsilon)).astype(np.float32)
        bounds = given
        if not is_given:
            first, last = (normal.min(), normal.max()) if normal.size else (np.float32(0), np.float32(0))
            bounds = Range(first, max(last, np.float32(first + least)))
        return as_integers(normal, bounds, x.dtype), *bounds

    return run
