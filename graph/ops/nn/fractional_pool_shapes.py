"""Shape functions of pooling by a fraction and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import numpy as np

from ....errors import InvalidArgumentError
from ...analysis.dims import ranked_shape_from
from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank
from ...dtypes import Shape


@shape_fn("FractionalMaxPool", "FractionalAvgPool")
def fractional_pool(c: ShapeContext) -> Sequence[Shape]:
    """The image, and where the regions along rows and columns begin, with the end."""
    sizes, ratios = with_rank(c.inputs[0], 4), c.attrs["pooling_ratio"]
    if len(ratios) != 4:
        raise InvalidArgumentError("pooling_ratio field must specify 4 dimensions")
    pooled: list[int | None] = []
    for size, ratio in zip(sizes, ratios, strict=True):
        pooled.append(None if size is None else floor(np.float32(size) / np.float32(ratio)))
        if pooled[-1] is not None and pooled[-1] < 0:
            raise InvalidArgumentError(f"Size computed for dim is negative: {pooled[-1]}")
    rows, columns = (None if n is None else n + 1 for n in pooled[1:3])
    return tuple(pooled), (rows,), (columns,)


@shape_fn("FractionalMaxPoolGrad")
def fractional_max_pool_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the original image."""
    return (with_rank(c.inputs[0], 4),)


@shape_fn("FractionalAvgPoolGrad")
def fractional_avg_pool_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape that input 0 holds."""
    return (ranked_shape_from(c, 0, 4),)
