"""What kernels of norms share: checks of what they are given, and sums over all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array


def check_gain(x: Array, gain: Array) -> None:
    """InvalidArgumentError unless the gain has a number for each element of the last axis of x."""
    if x.ndim < 1 or gain.shape != x.shape[-1:]:
        raise InvalidArgumentError(
            f"x has the shape {shape_text(x.shape)} and gain {shape_text(gain.shape)}; gain must have rank 1, and the "
            "last axis of x must be as long"
        )


def check_rows(x: Array, of_rows: Mapping[str, Array], d_y: Array) -> None:
    """InvalidArgumentError, by name, unless inputs have a number for each row of x, and d_y the shape of x."""
    wanted = {**{name: (given, x.shape[:-1]) for name, given in of_rows.items()}, "d_y": (d_y, x.shape)}
    for name, (given, shape) in wanted.items():
        if given.shape != shape:
            raise InvalidArgumentError(
                f"{name} has the shape {shape_text(given.shape)}, but x has {shape_text(x.shape)}, which gives "
                f"{shape_text(shape)}"
            )


def rows_summed(values: Array, dtype: np.dtype[Any]) -> Array:
    """The sum of values [..., n] over all rows, [n], rounded to a type."""
    size = values.shape[-1]
    return np.asarray(np.add.reduce(values.reshape(values.size // max(1, size), size), 0), dtype)
