"""Parsed SequenceExamples, asked for one feature after the other.

A record has context features, as an Example has, and feature lists: a sequence of steps with a feature in each. All
steps of all records are one column.

    f: [1 2] [3] in record 0, [4] in record 1     column values 1 2 3 4, counts 2 1 1, steps 2 1
                                                  sparse  indices [0 0 0] [0 0 1] [0 1 0] [1 0 0], shape [2 2 2]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ....graph.ops.parsing.feature_columns import FeatureBytes, FeatureColumn, column_of, sequence_of, steps_of
from ..checks import require
from .column_tensors import blank, filled, longest, padded, places, sparse_parts, splits_of


@dataclass(frozen=True, slots=True)
class ListSteps:
    """The steps of a feature list in all records: their features, and how many each record has (-1: no such list)."""

    column: FeatureColumn
    counts: Array

    @property
    def numbers(self) -> Array:
        """The number of steps of each record."""
        return np.maximum(self.counts, 0)


def required_list(name: str, key: str) -> InvalidArgumentError:
    """The error about a feature list that a record lacks."""
    return InvalidArgumentError(
        f"Name: {name}, Feature list '{key}' is required but could not be found.  Did you mean to include it in "
        "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
    )


class SequenceBatch:
    """A batch of records or, without a batch axis in its outputs, a single one. Errors name the record."""

    def __init__(self, records: list[bytes], names: list[bytes], single: bool) -> None:
        self._names = names
        self._single = single
        parsed = []
        for i, record in enumerate(records):
            maps = sequence_of(record)
            if maps is None:
                raise InvalidArgumentError(f"Invalid protocol message input, example id: {self._name(i)}")
            parsed.append(maps)
        self._contexts = [context for context, _ in parsed]
        self._lists = [lists for _, lists in parsed]

    def _name(self, record: int) -> str:
        return self._names[record].decode(errors="replace") if self._names else "<unknown>"

    def _context(self, key: str, dtype: DataType) -> tuple[FeatureColumn, list[FeatureBytes]]:
        pieces = [features.get(key) for features in self._contexts]
        column = column_of(pieces, dtype)
        wrong = column.wrong()
        if wrong is not None:
            raise InvalidArgumentError(
                f"Name: {self._name(wrong)}, Context feature: {key}.  Data types don't match. "
                f"Expected type: {dtype_name(dtype)}"
            )
        return column, pieces

    def context_sparse(self, key: str, dtype: DataType) -> tuple[Array, Array, Array]:
        """Indices, values and shape."""
        indices, values, shape = sparse_parts(self._context(key, dtype)[0])
        return (indices[:, 1:], values, shape[1:]) if self._single else (indices, values, shape)

    def context_ragged(self, key: str, dtype: DataType, splits: DataType) -> tuple[Array, Array]:
        """Values and row splits. Of a single record there are none (TensorFlow gives an undefined scalar)."""
        column, _ = self._context(key, dtype)
        return column.values, self._splits(column.counts, splits)

    def _splits(self, counts: Array, dtype: DataType) -> Array:
        split_type = numpy_dtype(dtype)
        return np.zeros(0, split_type) if self._single else splits_of(counts, split_type)

    def context_dense(self, key: str, dtype: DataType, shape: tuple[int, ...], default: Array) -> Array:
        """The values of each record, or the default where it lacks the feature."""
        column, pieces = self._context(key, dtype)
        size, most = prod(shape), max(longest(column.counts), int(np.size(default)))
        require(
            most == size, f"Inconsistent max number of elements for feature {key}: expected {size}, but found {most}"
        )
        absent = np.array([piece is None for piece in pieces], bool)
        if not np.size(default) and absent.any():
            raise InvalidArgumentError(
                f"Feature: {key} (data type: {dtype_name(dtype)}) is required but could not be found."
            )
        wrong = np.flatnonzero((column.counts != size) & ~absent)
        if len(wrong):
            raise InvalidArgumentError(f"Unexpected number of elements in example {self._name(int(wrong[0]))}")
        tensor = filled(column, shape, default)
        return tensor[0, ...] if self._single else tensor

    def _steps(self, key: str, dtype: DataType) -> ListSteps:
        """The column of all steps; InvalidArgumentError for one of another type."""
        pieces: list[FeatureBytes] = []
        counts: list[int] = []
        for lists in self._lists:
            feature_list = lists.get(key)
            steps = [] if feature_list is None else steps_of(feature_list)
            counts.append(-1 if feature_list is None else len(steps))
            pieces += steps
        found = ListSteps(column_of(pieces, dtype), np.array(counts, np.int64))
        wrong = found.column.wrong()
        if wrong is not None:
            record, step = self._place(found, wrong)
            raise InvalidArgumentError(
                f"Name: {self._name(record)}, Feature list: {key}, Index: {step}.  Data types don't match. "
                f"Expected type: {dtype_name(dtype)}"
            )
        return found

    def _place(self, found: ListSteps, index: int) -> tuple[int, int]:
        """The record, and the step in it, of the step `index` of all."""
        limits = np.cumsum(found.numbers)
        record = int(np.searchsorted(limits, index, "right"))
        return record, index - int(limits[record] - found.numbers[record])

    def list_sparse(self, key: str, dtype: DataType) -> tuple[Array, Array, Array]:
        """Indices, values and shape: record, step, number within the step."""
        found = self._steps(key, dtype)
        numbers, counts = found.numbers, found.column.counts
        records = np.repeat(np.repeat(np.arange(len(numbers)), numbers), counts)
        indices = np.stack([records, np.repeat(places(numbers), counts), places(counts)], axis=1)
        shape = np.array([len(numbers), longest(numbers), longest(counts)], np.int64)
        return (
            (indices[:, 1:], found.column.values, shape[1:]) if self._single else (indices, found.column.values, shape)
        )

    def list_ragged(self, key: str, dtype: DataType, splits: DataType) -> tuple[Array, Array, Array]:
        """Values, splits of the records into steps (see `context_ragged`), splits of the steps into values."""
        found = self._steps(key, dtype)
        inner = splits_of(found.column.counts, numpy_dtype(splits))
        return found.column.values, self._splits(found.numbers, splits), inner

    def list_dense(self, key: str, dtype: DataType, shape: tuple[int, ...], may_lack: bool) -> tuple[Array, Array]:
        """[records, steps, *shape], blank behind the last step of a record, and the numbers of steps."""
        found = self._steps(key, dtype)
        lacking = np.flatnonzero(found.counts < 0)
        if len(lacking) and not may_lack:
            raise required_list(self._name(int(lacking[0])), key)
        self._check_steps(key, found, shape)
        numbers = found.numbers
        tensor = blank(dtype, (len(numbers), longest(numbers), *shape))
        padded(found.column.values, numbers * prod(shape), tensor)
        return (tensor[0], numbers[0, ...]) if self._single else (tensor, numbers)

    def _check_steps(self, key: str, found: ListSteps, shape: tuple[int, ...]) -> None:
        """InvalidArgumentError unless every step has as many values as the shape says."""
        size = prod(shape)
        wrong = np.flatnonzero(found.column.counts != size)
        if not len(wrong):
            return
        ends = np.cumsum(found.numbers)
        sums = np.concatenate([[0], np.cumsum(found.column.counts)])
        most = longest(sums[ends] - sums[ends - found.numbers])
        if size and most % size:
            raise InvalidArgumentError(
                f"Feature list '{key}' has an unexpected number of values.  Total values size: {most} is not "
                f"consistent with output shape: {shape_text((None, *shape))}"
            )
        record, step = self._place(found, int(wrong[0]))
        raise InvalidArgumentError(
            f"Name: {self._name(record)}, Key: {key}, Index: {step}.  Number of values != expected.  "
            f"values size: {found.column.counts[wrong[0]]} but output shape: {shape_text(shape)}"
        )
