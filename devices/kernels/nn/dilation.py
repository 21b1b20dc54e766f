"""Grey-scale dilation: the maximum over a window of the input plus a structuring function, and its gradients.

Cells outside the image take part in no maximum; of equal sums the first counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.nn.dilation_shapes import dilation_attrs
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel
from .sliding import Sweep, sweep

SweepOf = Callable[[Array, Array], Sweep]


def _sweep_of(node: Construction) -> SweepOf:
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


def _dilated(x: Array, w: Array, walked: Sweep) -> tuple[Array, Array]:
    """The maxima, and the number of the tap that each came from."""
    shape = (x.shape[0], *walked.output, x.shape[-1])
    best = np.full(shape, np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf, x.dtype)
    number = np.zeros(shape, np.int32)
    for index, (tap, out, seen) in enumerate(_real_taps(walked, x.shape[1:-1])):
        sums = x[seen] + w[tap]
        better = sums > best[out]
        np.copyto(best[out], sums, where=better)
        np.copyto(number[out], index, where=better)
    return best, number


def _real_taps(
    walked: Sweep, sizes: Sequence[int]
) -> list[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
    """Each window cell with the outputs for which it lies inside the image, and the image cells there."""
    taps = []
    for tap in np.ndindex(*walked.window):
        spans = [walked.covered(axis, offset, sizes[axis]) for axis, offset in enumerate(tap)]
        taps.append((tap, (slice(None), *(s[0] for s in spans)), (slice(None), *(s[1] for s in spans))))
    return taps


@kernel("Dilation2D")
def dilation(node: Construction) -> Kernel:
    """The maximum over the window of input plus filter."""
    walked = _sweep_of(node)
    return in_float32(lambda x, w: _dilated(x, w, walked(x, w))[0], node.output_types[0])


@kernel("Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def dilation_backprop(node: Construction) -> Kernel:
    """The gradient goes to the cell, or the filter's entry, that gave the maximum."""
    walked_of, to_input = _sweep_of(node), node.op.endswith("Input")

    def gradient(x: Array, w: Array, grad: Array) -> Array:
        walked = walked_of(x, w)
        _, number = _dilated(x, w, walked)
        if grad.shape != number.shape:
            raise InvalidArgumentError(f"out_backprop must have shape {shape_text(number.shape)}")
        result = np.zeros_like(x if to_input else w)
        for index, (tap, out, seen) in enumerate(_real_taps(walked, x.shape[1:-1])):
            share = np.where(number[out] == index, grad[out], grad.dtype.type(0))
            if to_input:
                result[seen] += share
            else:
                result[tap] += share.sum(axis=(0, 1, 2), dtype=grad.dtype)
        return result

    return in_float32(gradient, node.output_types[0])
