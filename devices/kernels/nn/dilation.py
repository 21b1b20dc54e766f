"""Grey-scale dilation: the maximum over a window of the input plus a structuring function, and its gradients.

Cells outside the image and NaN take part in no maximum; of equal sums the first counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.nn.dilation_shapes import dilation_attrs
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel
from .sliding import Sweep, sweep

DilationSweep = Callable[[Array, Array], Sweep]
Tap = tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]


def _sweep_of(node: Construction) -> DilationSweep:
    attrs = dilation_attrs(node.attrs)
    for values, what in ((attrs.raw_strides, "Stride"), (attrs.raw_dilations, "Rate")):
        if (values[0], values[3]) != (1, 1):
            raise UnimplementedError(f"{what} is only supported across spatial dimensions.")

    def walked(x: Array, w: Array) -> Sweep:
        if x.ndim != 4:
            raise InvalidArgumentError(f"input must be 4-dimensional: {shape_text(x.shape)}")
        if w.ndim != 3:
            raise InvalidArgumentError(f"filter must be 3-dimensional: {shape_text(w.shape)}")
        if x.shape[-1] != w.shape[-1]:
            raise InvalidArgumentError(f"input and filter must have the same depth: {x.shape[-1]} vs {w.shape[-1]}")
        return sweep(attrs, x.shape[1:-1], w.shape[:2])

    return walked


def _maxima(x: Array, walked: Sweep) -> Array:
    """The lowest finite number everywhere: what a window gives in which nothing is higher."""
    lowest = (np.iinfo if x.dtype.kind in "iu" else np.finfo)(x.dtype).min
    return np.full((x.shape[0], *walked.output, x.shape[-1]), lowest, x.dtype)


def _dilated(x: Array, w: Array, walked: Sweep) -> Array:
    best = _maxima(x, walked)
    for tap, out, seen in _real_taps(walked, x.shape[1:-1]):
        sums = x[seen] + w[tap]
        np.copyto(best[out], sums, where=sums > best[out])
    return best


def _winners(x: Array, w: Array, walked: Sweep) -> Array:
    """The number of the window cell that each maximum came from, 0 where nothing was higher than the lowest number."""
    best = _maxima(x, walked)
    number = np.zeros(best.shape, np.intp)
    for index, (tap, out, seen) in enumerate(_real_taps(walked, x.shape[1:-1])):
        sums = x[seen] + w[tap]
        better = sums > best[out]
        np.copyto(best[out], sums, where=better)
        np.copyto(number[out], index, where=better)
    return number


@lru_cache(maxsize=64)
def _real_taps(walked: Sweep, sizes: tuple[int, ...]) -> tuple[Tap, ...]:
    """Each window cell with the outputs for which it lies inside the image, and the image cells there."""
    taps = []
    for tap in np.ndindex(*walked.window):
        spans = [walked.covered(axis, offset, sizes[axis]) for axis, offset in enumerate(tap)]
        taps.append((tap, (slice(None), *(s[0] for s in spans)), (slice(None), *(s[1] for s in spans))))
    return tuple(taps)


def _image_rows(number: Array, walked: Sweep, sizes: Sequence[int]) -> Array:
    """The number of the image's cell, counted over the batch without its channels, that each maximum came from.

    The first cell of a window that begins outside the image stands for the nearest one inside.
    """
    rows = np.arange(len(number)).reshape(-1, 1, 1, 1)
    for axis, offset in enumerate(np.divmod(number, walked.window[1])):
        place = [1, 1, 1, 1]
        place[axis + 1] = -1
        first = np.arange(walked.output[axis]).reshape(place) * walked.strides[axis] - walked.walks[axis].before
        rows = rows * sizes[axis] + np.maximum(first + offset * walked.dilations[axis], 0)
    return rows


@kernel("Dilation2D")
def dilation(node: Construction) -> Kernel:
    """The maximum over the window of input plus filter."""
    walked = _sweep_of(node)
    return in_float32(lambda x, w: _dilated(x, w, walked(x, w)), node.output_types[0])


@kernel("Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def dilation_backprop(node: Construction) -> Kernel:
    """The gradient goes to the cell, or the filter's entry, that gave the maximum, in the order of the outputs."""
    walked_of, to_input = _sweep_of(node), node.op.endswith("Input")

    def gradient(x: Array, w: Array, grad: Array) -> Array:
        walked = walked_of(x, w)
        number = _winners(x, w, walked)
        if grad.shape != number.shape:
            raise InvalidArgumentError(f"out_backprop must have shape {shape_text(number.shape)}")
        result = np.zeros((x if to_input else w).shape, grad.dtype)
        if not w.size:
            return result
        rows = _image_rows(number, walked, x.shape[1:-1]) if to_input else number
        places = rows * x.shape[-1] + np.arange(x.shape[-1])
        np.add.at(result.reshape(-1), places.reshape(-1), grad.reshape(-1))
        return result

    return in_float32(gradient, node.output_types[0])
