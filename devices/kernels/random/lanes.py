"""Random numbers that are drawn by rejection: one lane per number, which draws from a part of the stream of its own.

The redraws of one number do not change the others. All numbers are drawn at once, the rejected ones again.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from ..checks import require
from . import philox
from .philox import Position
from .random_ops import RESERVED

_DOUBLE = np.dtype(np.float64)
_Draw = Callable[[Array, np.dtype[Any]], Array]
_DRAWS: tuple[_Draw, ...] = (philox.uniform_from, philox.normal_from)


class GeneratorLanes:
    """One lane per number: a stream position, and the unused part of the last two uniform and normal draws.

    Lane i begins `first_blocks[i]` blocks from the place.
    """

    def __init__(self, place: Position, first_blocks: Array) -> None:
        self._place = place
        self._block = first_blocks.astype(np.uint64)
        self._drawn: dict[_Draw, Array] = {draw: np.empty((len(first_blocks), 2)) for draw in _DRAWS}
        self._left: dict[_Draw, Array] = {draw: np.zeros(len(first_blocks), np.intp) for draw in _DRAWS}

    def uniform(self, lanes: Array) -> Array:
        """A number in [0, 1) for each of some lanes."""
        return self._next(philox.uniform_from, lanes)

    def normal(self, lanes: Array) -> Array:
        """A standard normal number for each of some lanes."""
        return self._next(philox.normal_from, lanes)

    def _next(self, draw: _Draw, lanes: Array) -> Array:
        drawn, unused = self._drawn[draw], self._left[draw]
        empty = lanes[unused[lanes] == 0]
        if empty.size:
            drawn[empty] = draw(philox.blocks(self._place, self._block[empty]), _DOUBLE)
            self._block[empty] += np.uint64(1)
            unused[empty] = 2
        unused[lanes] -= 1
        return drawn[lanes, unused[lanes]]


Sampler = Callable[..., Array]
"""lanes, and parameters by lane -> numbers by lane"""


def per_parameter(sizes: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """How many numbers of each parameter an output of `sizes` has, which must end with the shape of the parameters."""
    lead = len(sizes) - len(shape)
    require(lead >= 0 and sizes[lead:] == shape, "Shape passed in must end with broadcasted shape.")
    return prod(sizes[:lead])


def draw(
    sampler: Sampler,
    place: Position,
    sizes: tuple[int, ...],
    *parameters: Array,
    reserved: int | Array = RESERVED,
) -> Array:
    """Numbers of shape `sizes` in float64; all parameters have the shape that `sizes` ends with.

    Lanes are numbered by parameter first, then by number of that parameter. Lane i begins i times as many blocks from
    the place as are reserved for a number of its parameter.
    """
    each = per_parameter(sizes, parameters[0].shape)
    spacing = np.repeat(np.broadcast_to(reserved, parameters[0].shape).reshape(-1), each)
    lanes = GeneratorLanes(place, np.arange(prod(sizes)) * spacing)
    drawn = sampler(lanes, *(np.repeat(values.reshape(-1), each) for values in parameters))
    return np.ascontiguousarray(drawn.reshape(-1, each).T).reshape(sizes)
