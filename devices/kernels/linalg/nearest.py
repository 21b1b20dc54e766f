"""The nearest of some points to each of other points."""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array
from ..arrays.selection import top_places
from ..checks import require
from ..registry import simple


def nearest_neighbors(points: Array, centers: Array, k: Array) -> tuple[Array, Array]:
    """Numbers of the k nearest centers to each point, nearest first, and the squares of their distances.

    Fewer if there are fewer centers. Squares come from one matrix product: |p|^2 - 2 p c + |c|^2.
    """
    require(points.ndim == 2, "Input points should be specified as a matrix.")
    require(centers.ndim == 2, "Input centers should be specified as a matrix.")
    require(k.ndim == 0, "Input k should be a scalar.")
    columns = points.shape[1], centers.shape[1]
    require(columns[0] == columns[1], f"Expected point_dimensions == center_dimensions: {columns[0]} vs {columns[1]}.")
    squares = (points**2).sum(axis=1)[:, None] - 2 * (points @ centers.T) + (centers**2).sum(axis=1)
    squares = np.maximum(squares, 0)
    places = top_places(-squares, min(int(k), centers.shape[0]))
    return places.astype(np.int64), np.take_along_axis(squares, places, axis=1)


simple("NearestNeighbors", nearest_neighbors)
