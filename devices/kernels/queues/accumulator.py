"""Accumulators: gradients that workers add, each at its own pace, and their mean or sum once there are enough.

A gradient from before the accumulator's step is dropped. Taking resets the accumulator and increments its step. Calls
that take are served in the order in which they came.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import fits, shape_text
from ....graph.dtypes import Array, DataType, Shape, numpy_dtype
from ..checks import require
from ..registry import Call
from .waiting import Attempt, Lines


class Accumulator:
    """`shape` is the declared shape of the gradients, perhaps with unknown sizes."""

    def __init__(self, dtype: DataType, shape: Shape, *, is_mean: bool) -> None:
        self.dtype = dtype
        self.shape = shape
        self.is_mean = is_mean
        self.step = 0
        self.count = 0
        self.lines = Lines(1)

    def apply(self, local_step: int, gradient: Any) -> None:  # Any: the type of a gradient depends on the class
        """Adds a gradient, unless it is stale."""
        if local_step >= self.step:
            self.add(gradient)
            self.count += 1
            self.lines.advance()

    def take(self, call: Call, required: int) -> None:
        """Waits until there are `required` gradients, and takes all there are."""
        require(required > 0, f"Argument num_required must be positive, but was {required}")
        self.lines.join(0, _Taking(call, self, required))

    def add(self, gradient: Any) -> None:
        """Adds a gradient to those since the last take; InvalidArgumentError, and no change, if it does not fit."""
        raise NotImplementedError

    def result(self) -> tuple[Array, ...]:
        """The outputs of the op that takes: the mean or sum of the gradients since the last take."""
        raise NotImplementedError


class _Taking(Attempt):
    __slots__ = ("accumulator", "required")

    def __init__(self, call: Call, accumulator: Accumulator, required: int) -> None:
        super().__init__(call)
        self.accumulator = accumulator
        self.required = required

    def advance(self) -> bool:
        accumulator = self.accumulator
        if accumulator.count < self.required:
            return False
        self.end = partial(self.call.done, *accumulator.result())
        accumulator.count = 0
        accumulator.step += 1
        return True


class DenseAccumulator(Accumulator):
    """An accumulator of dense gradients."""

    _sum: Array

    def add(self, gradient: Array) -> None:
        """As in `Accumulator`; the gradient is one tensor."""
        shape = self._sum.shape if self.count else self.shape
        if not fits(gradient.shape, shape):
            raise InvalidArgumentError(
                f"Shape mismatch: expected {shape_text(shape)}, got {shape_text(gradient.shape)}"
            )
        self._sum = np.asarray(self._sum + gradient) if self.count else gradient

    def result(self) -> tuple[Array, ...]:
        """As in `Accumulator`: one tensor."""
        return (_divided(self._sum, self.count) if self.is_mean else self._sum,)


class SparseAccumulator(Accumulator):
    """An accumulator of gradients that are slices of a tensor; a slice's mean is over the gradients that have it.

    Gradients are merged as lists with ascending indices, even if their indices are not ascending.
    """

    _slices: list[tuple[int, Array, int]]  # index, sum, and the number of gradients in it

    def __init__(self, dtype: DataType, shape: Shape, *, is_mean: bool) -> None:
        super().__init__(dtype, shape, is_mean=is_mean)
        self._row: tuple[int, ...] = ()
        self._sizes: Shape = None

    def add(self, gradient: tuple[Array, Array, Array | None]) -> None:
        """As in `Accumulator`; the gradient is indices, values, and the shape if it is known."""
        indices, values, shape = gradient
        self._check(indices, values, None if shape is None else tuple(shape.tolist()))
        new = [(index, values[row, ...], 1) for row, index in enumerate(indices.tolist())]
        self._slices = merged(self._slices, new) if self.count else new
        self._row = values.shape[1:]
        self._sizes = None if shape is None else tuple(shape.tolist())

    def _check(self, indices: Array, values: Array, shape: tuple[int, ...] | None) -> None:
        if indices.ndim != 1:
            raise InvalidArgumentError(
                f"Input indices should be vector but received shape: {shape_text(indices.shape)}"
            )
        require(values.ndim > 0, "Values cannot be 0-dimensional.")
        require(len(values) == len(indices), f"Expected {len(indices)} non-empty input values, got {len(values)}")
        expected = self.shape
        if shape is not None and expected is not None:
            _check_sizes("shape", shape, expected, 0)
        sizes = expected if shape is None else shape
        if self.count:
            _check_sizes("values", values.shape, (None, *self._row), 1)
        if sizes is not None:
            _check_sizes("values", values.shape, sizes, 1)
            limit = sizes[0] if sizes else None
            for row, index in enumerate(indices.tolist()):
                require(
                    index >= 0 and (limit is None or index < limit),
                    f"Shape mismatch: index of slice {row} exceeded limits of shape; index is {index} exceeded {limit}",
                )

    def result(self) -> tuple[Array, ...]:
        """As in `Accumulator`: indices, values, and the shape, with -1 for unknown sizes."""
        dtype = numpy_dtype(self.dtype)
        values = np.zeros((len(self._slices), *self._row), dtype)
        for row, (_, total, count) in enumerate(self._slices):
            values[row] = _divided(total, count) if self.is_mean else total
        known = self._sizes or self.shape
        sizes = (None, *self._row) if known is None else known
        shape = np.array([-1 if size is None else size for size in sizes], np.int64)
        return np.array([index for index, _, _ in self._slices], np.int64), values, shape


def merged(first: list[tuple[int, Array, int]], second: list[tuple[int, Array, int]]) -> list[tuple[int, Array, int]]:
    """Two ascending lists of slices, merged; slices of one index are added."""
    slices: list[tuple[int, Array, int]] = []
    i = j = 0
    while i < len(first) and j < len(second):
        (a, x, m), (b, y, n) = first[i], second[j]
        if a == b:
            slices.append((a, np.asarray(x + y), m + n))
            i, j = i + 1, j + 1
        elif a < b:
            slices.append(first[i])
            i += 1
        else:
            slices.append(second[j])
            j += 1
    return slices + first[i:] + second[j:]


def _divided(total: Array, count: int) -> Array:
    return np.asarray(total / np.asarray(count).astype(total.dtype))


def _check_sizes(what: str, actual: tuple[int, ...], expected: tuple[int | None, ...], start: int) -> None:
    require(
        len(actual) == len(expected), f"Shape mismatch: expected {what} rank to be {len(expected)}, got {len(actual)}"
    )
    for axis in range(start, len(actual)):
        require(
            expected[axis] in (None, actual[axis]),
            f"Shape mismatch: expected {what} dim {axis} to be {expected[axis]}, got {actual[axis]}",
        )
