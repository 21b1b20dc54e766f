"""Accumulators: gradients that workers put in at their own pace, and their mean or sum for whoever waits for enough.

Flows in: gradients with the step they were computed at. Flows out: the mean (or sum) of what came since the last time.
Always holds: a gradient from before the accumulator's step is dropped; taking resets the accumulator and counts its
step up; who came first is served first.
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
    """See the module. `shape` is what is known of the gradients before the first comes."""

    def __init__(self, dtype: DataType, shape: Shape, *, is_mean: bool) -> None:
        self.dtype = dtype
        self.shape = shape
        self.is_mean = is_mean
        self.step = 0
        self.count = 0
        self.lines = Lines(1)

    def apply(self, local_step: int, gradient: Any) -> None:  # Any: what a gradient is the class knows
        """Adds a gradient, unless it is stale."""
        if local_step >= self.step:
            self.add(gradient)
            self.count += 1
            self.lines.advance()

    def take(self, call: Call, required: int) -> None:
        """Waits for so many gradients, and takes all there are."""
        require(required > 0, f"Argument num_required must be positive, but was {required}")
        self.lines.join(0, _Taking(call, self, required))

    def add(self, gradient: Any) -> None:
        """Adds a gradient to those of this round; InvalidArgumentError, and nothing added, if it does not fit."""
        raise NotImplementedError

    def result(self) -> tuple[Array, ...]:
        """What has come in this round, as outputs of the op that takes it."""
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
    """Of gradients that are whole tensors."""

    _sum: Array

    def add(self, gradient: Array) -> None:
        """As of any accumulator."""
        shape = self._sum.shape if self.count else self.shape
        if not fits(gradient.shape, shape):
            raise InvalidArgumentError(
                f"Shape mismatch: expected {shape_text(shape)}, got {shape_text(gradient.shape)}"
            )
        self._sum = np.asarray(self._sum + gradient) if self.count else gradient

    def result(self) -> tuple[Array, ...]:
        """As of any accumulator: one tensor."""
        return (_divided(self._sum, self.count) if self.is_mean else self._sum,)


class SparseAccumulator(Accumulator):
    """Of gradients that are some slices of a tensor. The mean of a slice is that of the gradients that have it.

    Gradients have ascending indices; others are merged as if they had.
    """

    _slices: list[tuple[int, Array, int]]  # index, sum, and how many were added up

    def __init__(self, dtype: DataType, shape: Shape, *, is_mean: bool) -> None:
        super().__init__(dtype, shape, is_mean=is_mean)
        self._row: tuple[int, ...] = ()
        self._sizes: Shape = None

    def add(self, gradient: tuple[Array, Array, Array | None]) -> None:
        """As of any accumulator: indices, values, and the shape where it is known."""
        indices, values, shape = gradient
        self._check(indices, values, None if shape is None else tuple(shape.tolist()))
        new = [(index, values[row, ...], 1) for row, index in enumerate(indices.tolist())]
        self._slices = merged(self._slices, new) if self.count else new
        self._row = values.shape[1:]
        self._sizes = None if shape is None else tuple(shape.tolist())

    def _check(self, indices: Array, values: Array, shape: tuple[int, ...] | None) -> None:
        require(indices.ndim == 1, f"Input indices should be vector but received shape: {shape_text(indices.shape)}")
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
        """As of any accumulator: indices, values, and the shape, with -1 for unknown sizes."""
        dtype = numpy_dtype(self.dtype)
        values = np.zeros((len(self._slices), *self._row), dtype)
        for row, (_, total, count) in enumerate(self._slices):
            values[row] = _divided(total, count) if self.is_mean else total
        known = self._sizes or self.shape
        sizes = (None, *self._row) if known is None else known
        shape = np.array([-1 if size is None else size for size in sizes], np.int64)
        return np.array([index for index, _, _ in self._slices], np.int64), values, shape


def merged(first: list[tuple[int, Array, int]], second: list[tuple[int, Array, int]]) -> list[tuple[int, Array, int]]:
    """Two ascending lists of slices as one; slices of one index are added up."""
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
