"""Windows that slide over an array: their reduction, and scattering to the element that a window selects.

All windows go through their cells together: step k combines what every window has so far with its cell k. A cell that
lies in the padding or in a hole of a dilated array is left out, whatever the initial value is.

    x = [1, 2, 3], windows of 2 cells, one cell of padding before x:    [-, 1]  [1, 2]  [2, 3]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType
from ..checks import require, vector_of
from ..datasets.dataset import PullSteps
from ..half_types import widen
from ..output_size import output_shape
from ..registry import Call, Construction, Start, deferred_kernel
from .computations import XlaComputation, carry_out, reducer
from .scatter import combine_at
from .slices import ends_of

Slices = tuple[slice, ...]
_SETTINGS = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows over an array: sizes, steps, distances of the elements and of a window's cells, (low, high) padding."""

    shape: tuple[int, ...]
    window: Sequence[int]
    strides: Sequence[int]
    spreads: Sequence[int]
    dilations: Sequence[int]
    padding: Sequence[Sequence[int]]

    def check(self) -> None:
        """InvalidArgumentError unless there is one positive number per axis of each kind."""
        rank = len(self.shape)
        kinds = (self.window, self.strides, self.spreads, self.dilations)
        for name, sizes in zip(_SETTINGS, kinds, strict=True):
            require(
                len(sizes) == rank and all(size > 0 for size in sizes),
                f"{name} must be {rank} positive numbers: {shape_text(sizes)}",
            )

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of windows along each axis."""
        return tuple(map(self._count, range(len(self.shape))))

    def _spread(self, axis: int) -> int:
        """The length of an axis with its holes."""
        return max(self.shape[axis] - 1, 0) * self.spreads[axis] + (self.shape[axis] > 0)

    def _count(self, axis: int) -> int:
        reach = (self.window[axis] - 1) * self.dilations[axis] + 1
        size = self._spread(axis) + sum(self.padding[axis])
        return max(size - reach, -1) // self.strides[axis] + 1 if size >= reach else 0

    def cells(self) -> Iterator[tuple[Slices, Slices]]:
        """For each cell that may be filled, in order: the windows that have an element there, and these elements."""
        if 0 in self.counts or 0 in self.shape:
            return
        for cell in product(*map(self._offsets, range(len(self.shape)))):
            along = [self._along(axis, offset) for axis, offset in enumerate(cell)]
            yield tuple([windows for windows, _ in along]), tuple([elements for _, elements in along])

    def _offsets(self, axis: int) -> range:
        """The cells of a window along an axis that reach an element of any window: a window may be all padding."""
        dilation, low = self.dilations[axis], self.padding[axis][0]
        first = -(((self._count(axis) - 1) * self.strides[axis] - low) // dilation)
        return range(max(first, 0), min(self.window[axis], (low + self._spread(axis) - 1) // dilation + 1))

    def _along(self, axis: int, offset: int) -> tuple[slice, slice]:
        """The windows along an axis that have an element at one cell, and the elements: both are equally spaced."""
        windows = np.arange(self._count(axis))
        places = windows * self.strides[axis] + offset * self.dilations[axis] - self.padding[axis][0]
        hit = (places >= 0) & (places < self._spread(axis)) & (places % self.spreads[axis] == 0)
        return _as_slice(windows[hit]), _as_slice(places[hit] // self.spreads[axis])


def _as_slice(places: Array) -> slice:
    """The slice of equally spaced places."""
    numbers = places.tolist()
    if not numbers:
        return slice(0, 0)
    return slice(numbers[0], numbers[-1] + 1, max(numbers[-1] - numbers[0], 1) // max(len(numbers) - 1, 1))


@deferred_kernel("XlaReduceWindow")
def reduce_window(node: Construction) -> Start:
    """The initial value and the elements of each window, combined in order."""
    computation = reducer(node, "computation", node.output_types)

    def start(
        call: Call,
        x: Array,
        initial: Array,
        window: Array,
        strides: Array,
        spreads: Array,
        dilations: Array,
        pad: Array,
    ) -> None:
        settings = zip(_SETTINGS, (window, strides, spreads, dilations), strict=True)
        sizes, steps, holes, gaps = (vector_of(np.asarray(setting), name) for name, setting in settings)
        sliding = Sliding(np.shape(x), sizes, steps, holes, gaps, ends_of(np.asarray(pad), np.ndim(x)))
        sliding.check()
        require(np.ndim(initial) == 0, f"init_value must be a scalar but got {shape_text(np.shape(initial))}")
        carry_out(call, _windows_reduced(computation, np.asarray(x), np.asarray(initial), sliding))

    return start


def _windows_reduced(
    computation: XlaComputation, x: Array, initial: Array, sliding: Sliding
) -> PullSteps[Sequence[Array]]:
    ufunc = computation.ufunc
    elements = x if ufunc is None else widen(x)
    results = np.full(output_shape(sliding.counts, elements.dtype), initial.astype(elements.dtype), elements.dtype)
    for windows, cells in sliding.cells():
        if ufunc is not None:
            results[windows] = ufunc(results[windows], elements[cells])
            yield None
        else:
            results[windows] = (yield from computation.each(results[windows], elements[cells]))[0]
    return (results.astype(x.dtype, copy=False),)


@deferred_kernel("XlaSelectAndScatter")
def select_and_scatter(node: Construction) -> Start:
    """Each element of `source` combined, in place of the one that its window selects, with the initial value there."""
    dtype = node.output_types[0]
    select = XlaComputation(node, "select", (dtype, dtype), (DataType.BOOL,))
    scatter = reducer(node, "scatter", (dtype,))

    def start(
        call: Call, x: Array, window: Array, strides: Array, padding: Array, source: Array, initial: Array
    ) -> None:
        ones = [1] * np.ndim(x)
        settings = zip(_SETTINGS, (window, strides), strict=False)
        sizes, steps = (vector_of(np.asarray(setting), name) for name, setting in settings)
        sliding = Sliding(np.shape(x), sizes, steps, ones, ones, ends_of(np.asarray(padding), np.ndim(x)))
        sliding.check()
        require(
            np.shape(source) == sliding.counts,
            f"Source shape does not match the shape of window-reduced operand: source({shape_text(np.shape(source))}), "
            f"window-reduced operand({shape_text(sliding.counts)}).",
        )
        require(np.ndim(initial) == 0, f"init_value must be a scalar but got {shape_text(np.shape(initial))}")
        carry_out(call, _scattered(select, scatter, np.asarray(x), sliding, np.asarray(source), np.asarray(initial)))

    return start


def _scattered(
    select: XlaComputation, scatter: XlaComputation, x: Array, sliding: Sliding, source: Array, initial: Array
) -> PullSteps[Sequence[Array]]:
    flat, chosen = x.reshape(-1), np.full(source.shape, -1)
    numbers = np.arange(x.size).reshape(x.shape)
    for windows, cells in sliding.cells():
        present, new = chosen[windows], numbers[cells]
        stays = (yield from select.each(flat[present], flat[new]))[0]
        chosen[windows] = np.where((present >= 0) & stays, present, new)
    has_one = chosen >= 0
    result = np.full(x.size, initial, x.dtype)
    yield from combine_at(scatter, result, chosen[has_one], source[has_one])
    return (result.reshape(x.shape),)
