"""The shape of what rotary positions turn: shared by the shape function and the kernel."""

from __future__ import annotations

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import merge, shape_text
from ...dtypes import Shape


def rotary_shape(x: Shape, cosines: Shape, sines: Shape, *, sequence_first: bool) -> Shape:
    """The shape of x; InvalidArgumentError unless the tables have a row per position and at most d / 2 columns."""
    tables = merge(cosines, sines)
    if tables is not None and len(tables) != 2:
        raise InvalidArgumentError(f"cosines must have rank 2, [s, r / 2], but its shape is {shape_text(tables)}")
    if x is None:
        return None
    if len(x) != 4:
        order = "[s, b, heads, d]" if sequence_first else "[b, s, heads, d]"
        raise InvalidArgumentError(f"x must have rank 4, {order}, but its shape is {shape_text(x)}")
    if tables is None:
        return x
    axis = 0 if sequence_first else 1
    positions = x[axis]
    if positions is not None and tables[0] not in (None, positions):
        raise InvalidArgumentError(
            f"x has {positions} positions and cosines {tables[0]} rows; slice the tables to the positions of x"
        )
    if x[3] is not None and tables[1] is not None and 2 * tables[1] > x[3]:
        raise InvalidArgumentError(
            f"cosines has {tables[1]} columns, for {2 * tables[1]} elements of a head, but x has {x[3]}"
        )
    return (*x[:axis], tables[0] if positions is None else positions, *x[axis + 1 :])
