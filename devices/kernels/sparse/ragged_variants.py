"""Kernels between ragged tensors and variants, which carry a ragged tensor as one element.

splits [0 2 2 3], values 1 2 3      batched      three variants, of values 1 2, none, and 3
                                    otherwise    one variant, of the splits and the values
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name, from_numpy, numpy_dtype
from ..carried import carrying, sum_of, zeros_like
from ..checks import require
from ..registry import Construction, Kernel, kernel, outputs
from .ragged_rows import verify_splits


@dataclass(frozen=True, slots=True)
class RaggedValue:
    """A ragged tensor, or one without splits, as an element of a tensor of variants."""

    splits: tuple[Array, ...]
    values: Array
    dtype: DataType

    def plus(self, other: RaggedValue) -> RaggedValue:
        """The sums of the values; both have the same splits."""
        same = len(self.splits) == len(other.splits) and self.values.shape == other.values.shape
        require(same, "Cannot add ragged tensors of different shapes.")
        return RaggedValue(self.splits, sum_of(self.values, other.values, self.dtype), self.dtype)

    def zeros(self) -> RaggedValue:
        """The same splits, and zeros."""
        return RaggedValue(self.splits, zeros_like(self.values, self.dtype), self.dtype)

    @property
    def length(self) -> int:
        """The number of rows, or of values."""
        return len(self.splits[0]) - 1 if self.splits else len(self.values)

    def row(self, i: int) -> RaggedValue:
        """Row i by itself."""
        if not self.splits:
            return RaggedValue((), self.values[i, ...], self.dtype)
        start, limit = self.splits[0][i : i + 2].tolist()
        inner: list[Array] = []
        for splits in self.splits[1:]:
            part = splits[start : limit + 1]
            inner.append(part - part[0])
            start, limit = int(part[0]), int(part[-1])
        return RaggedValue(tuple(inner), self.values[start:limit], self.dtype)


def _checked(splits: tuple[Array, ...], values: Array) -> None:
    counts = [len(inner) - 1 for inner in splits[1:]] + [len(values) if values.ndim else 0]
    for each, count in zip(splits, counts, strict=False):
        verify_splits(each, count)


@kernel("RaggedTensorToVariant")
def ragged_tensor_to_variant(node: Construction) -> Kernel:
    """One variant for each row, or one of all."""
    batched, dtype = node.attrs["batched_input"], node.attrs["Tvalues"]

    def run(*inputs: Array) -> Array:
        splits, values = inputs[:-1], np.asarray(inputs[-1])
        _checked(splits, values)
        whole = RaggedValue(splits, values, dtype)
        if not batched:
            return carrying(whole)
        rows = np.empty(whole.length, object)
        for i in range(len(rows)):
            rows[i] = whole.row(i)
        return rows

    return run


def _ragged(i: int, element: object, rank: int, node: Construction) -> RaggedValue:
    """The ragged tensor that an element carries; InvalidArgumentError if it has another rank or type."""
    if not isinstance(element, RaggedValue):
        raise InvalidArgumentError(f"Input Variant element at index {i} doesn't hold a RaggedTensorVariant")
    if len(element.splits) != rank:
        raise InvalidArgumentError(
            f"Encoded input RaggedTensorVariant has ragged_rank={len(element.splits)}.  Expected ragged_rank={rank}."
        )
    dtype, split_type = node.attrs["Tvalues"], node.attrs["Tsplits"]
    found = dtype_name(element.dtype)
    if element.dtype != dtype:
        raise InvalidArgumentError(f"Expected values Tensor dtype: {dtype_name(dtype)}, found: {found}")
    for splits in element.splits:
        found = dtype_name(from_numpy(splits))
        message = f"Expected row_splits Tensor dtype: {dtype_name(split_type)}, found: {found}"
        require(splits.dtype == numpy_dtype(split_type), message)
    return element


def _check_shapes(values: list[Array], first_axis: int) -> None:
    for i, each in enumerate(values[1:], 1):
        if each.shape[first_axis:] != values[0].shape[first_axis:]:
            raise InvalidArgumentError(
                f"All flat_values must have compatible shapes.  Shape at index 0: {shape_text(values[0].shape)}.  "
                f"Shape at index {i}: {shape_text(each.shape)}"
            )


def _joined_splits(parts: list[RaggedValue], level: int) -> Array:
    """The splits of one level of all parts, one after the other."""
    lengths = [np.diff(part.splits[level]) for part in parts]
    return np.concatenate([[0], np.cumsum(np.concatenate(lengths) if lengths else [])])


def _batch(parts: list[RaggedValue], shape: tuple[int, ...], rank: int, node: Construction) -> list[Array]:
    """Splits and values of the ragged tensor whose rows the parts are."""
    split_type = numpy_dtype(node.attrs["Tsplits"])
    splits: list[Any] = [np.arange(int(np.prod(shape[:axis])) + 1) * shape[axis] for axis in range(1, len(shape))]
    values = [part.values for part in parts]
    for i, each in enumerate(values):
        require(each.ndim > 0, f"Ragged values must have rank >= 1; encoded scalar element at index {i} has none")
    _check_shapes(values, 1)
    splits.append(np.cumsum([0, *(part.length for part in parts)]))
    splits += [_joined_splits(parts, level) for level in range(rank)]
    empty = np.zeros(0, numpy_dtype(node.attrs["Tvalues"]))
    return [*(each.astype(split_type) for each in splits), np.concatenate(values) if values else empty]


@kernel("RaggedTensorFromVariant")
def ragged_tensor_from_variant(node: Construction) -> Kernel:
    """The ragged tensor that a scalar carries, or of those that a tensor of variants carries."""
    declared, rank = node.attrs["input_ragged_rank"], node.attrs["output_ragged_rank"]

    def run(encoded: Array) -> Any:  # splits and values
        dims = encoded.ndim
        inner = rank - dims if declared == -1 else declared
        require(
            rank == 0 or inner >= 0,
            "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= 0, found "
            f"output_ragged_rank: {rank}, encoded_variant.dims(): {dims}, inferred input_ragged_rank: {inner}",
        )
        require(
            rank == inner + dims or rank == inner == 0,
            "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: "
            f"{rank}, input_ragged_rank: {inner}, encoded_variant.dims(): {dims}.",
        )
        inner = max(inner, 0)
        parts = [_ragged(i, element, inner, node) for i, element in enumerate(encoded.reshape(-1).tolist())]
        if not dims:
            return outputs([*parts[0].splits, parts[0].values])
        if rank == 0:
            values = [part.values for part in parts]
            _check_shapes(values, 0)
            return np.stack(values) if values else np.zeros(0, numpy_dtype(node.attrs["Tvalues"]))
        return outputs(_batch(parts, encoded.shape, inner, node))

    return run


@kernel("RaggedTensorToVariantGradient")
def ragged_tensor_to_variant_gradient(node: Construction) -> Kernel:
    """The gradient of the values, from those of the rows."""
    dtype = numpy_dtype(node.attrs["Tvalues"])

    def run(encoded: Array, _: Array, shape: Array) -> Array:
        parts = []
        for i, element in enumerate(encoded.reshape(-1).tolist()):
            if not isinstance(element, RaggedValue):
                raise InvalidArgumentError(f"Input Variant element at index {i} doesn't hold a RaggedTensorVariant")
            parts.append(element.values.reshape(-1))
        flat = np.concatenate(parts) if parts else np.zeros(0, dtype)
        return flat.reshape(shape.tolist())

    return run
