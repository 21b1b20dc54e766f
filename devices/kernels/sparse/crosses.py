"""Kernels of feature crosses: all combinations of one feature from each input, row by row, joined or hashed.

    a: [x y] [z]      b: [1] [2 3]      crossed: [x_X_1 y_X_1] [z_X_2 z_X_3]

Hashes are FarmHash fingerprints (or SipHash) of the features, mixed one after the other as MurmurHash64A mixes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, numpy_dtype
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from ..strings.each_string import strings
from ..strings.farm_hash import farm_fingerprint, farm_fingerprints
from ..strings.hashing import sip_hash
from .ragged_rows import verify_splits

_MUL, _SHIFT = np.uint64(0xC6A4A7935BD1E995), np.uint64(47)
_LARGEST = np.uint64(2**63 - 1)
_MASK = 2**64 - 1
_WRONG_RANK = "tf.ragged.cross only supports inputs with rank=2."


@dataclass(frozen=True, slots=True)
class CrossedColumn:
    """All features of one input in order, and how many each row has; `is_dense` as TensorFlow's keyed hash asks."""

    features: Array
    counts: Array
    is_dense: bool = False


def _sparse_column(indices: Array, values: Array, shape: Array) -> CrossedColumn:
    """Rows behind the last one of the shape are left out."""
    rows = int(shape[0])
    inside = (indices[:, 0] >= 0) & (indices[:, 0] < rows)
    return CrossedColumn(values[inside], np.bincount(indices[inside, 0], minlength=rows))


def _check_ragged(values: Array, splits: Array) -> None:
    require(values.ndim == splits.ndim == 1, _WRONG_RANK)
    verify_splits(splits, len(values))


def _check_ragged_sparse(number: int, indices: Array, values: Array, shape: Array) -> None:
    fits = indices.ndim == 2 and values.ndim == shape.ndim == 1 and len(indices) == len(values) and indices.shape[1] > 0
    require(fits, f"Invalid SparseTensor {number}")
    require(shape.size == 2, _WRONG_RANK)


def _check_batches(ragged: Sequence[Array], shapes: Sequence[Array], dense: Sequence[Array]) -> None:
    """InvalidArgumentError unless all inputs have as many rows."""
    for x in dense:
        require(x.ndim == 2, _WRONG_RANK)
    rows = {len(splits) - 1 for splits in ragged} | {int(shape[0]) for shape in shapes} | {len(x) for x in dense}
    require(len(rows) <= 1 and min(rows, default=0) >= 0, "inputs must all have the same batch dimension size.")


def _dense_column(x: Array) -> CrossedColumn:
    return CrossedColumn(x.reshape(-1), np.full(x.shape[0], x.shape[1]), is_dense=True)


def _ragged_column(values: Array, splits: Array) -> CrossedColumn:
    return CrossedColumn(values, np.diff(splits).astype(np.int64))


def _combinations(columns: Sequence[CrossedColumn]) -> tuple[Array, list[Array]]:
    """The number of combinations of each row, and for each column which feature each combination has."""
    counts = np.prod([column.counts for column in columns], axis=0, dtype=np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    picked: list[Array] = []
    for column in reversed(columns):  # the last column changes fastest
        width = column.counts[rows]
        picked.append((np.cumsum(column.counts) - column.counts)[rows] + number % width)
        number = number // width
    return counts, picked[::-1]


def _texts(features: Array) -> list[bytes]:
    if features.dtype == object:
        texts: list[bytes] = features.tolist()
        return texts
    return [str(feature).encode() for feature in features.tolist()]


def _joined(columns: Sequence[CrossedColumn], picked: Sequence[Array], separator: bytes) -> Array:
    texts = [_texts(column.features) for column in columns]
    rows = zip(*([words[i] for i in chosen.tolist()] for words, chosen in zip(texts, picked, strict=True)), strict=True)
    crossed = list(map(separator.join, rows))
    return strings(crossed, (len(crossed),))


def _mixed(a: Array, b: Array) -> Array:
    """Two fingerprints as one."""
    product = b * _MUL
    result = (a ^ _MUL ^ ((product ^ (product >> _SHIFT)) * _MUL)) * _MUL
    result = (result ^ (result >> _SHIFT)) * _MUL
    return result ^ (result >> _SHIFT)


Fingerprints = Callable[[CrossedColumn], Array]
"""from a column to one number of 64 bits for each feature"""


def _hashed(
    columns: Sequence[CrossedColumn], picked: Sequence[Array], fingerprints: Fingerprints, buckets: int, key: int | None
) -> Array:
    """The mixed fingerprints, below `buckets` (or 2^63 - 1), starting from `key` if there is one."""
    each = [fingerprints(column)[chosen] for column, chosen in zip(columns, picked, strict=True)]
    if key is not None:
        each = [np.full(each[0].shape, key & _MASK, np.uint64), *each]
    with np.errstate(over="ignore"):
        result = reduce(_mixed, each)
    return (result % (np.uint64(buckets) if buckets > 0 else _LARGEST)).astype(np.int64)


def _plain_fingerprints(column: CrossedColumn) -> Array:
    """FarmHash of a text; a whole number is its own fingerprint."""
    if column.features.dtype == object:
        return farm_fingerprints(column.features.tolist())
    return column.features.astype(np.int64).view(np.uint64)


def _keyed_fingerprints(strong: bool, key: tuple[int, int]) -> Fingerprints:
    """Of a text its hash; of a number in a sparse tensor the hash of its lower four bytes, in a dense one itself."""

    def fingerprints(column: CrossedColumn) -> Array:
        if column.features.dtype != object and column.is_dense:
            return column.features.astype(np.int64).view(np.uint64)
        if column.features.dtype == object:
            texts = column.features.tolist()
        else:
            texts = [(number % 2**32).to_bytes(4, "little") for number in column.features.tolist()]
        hashes = [sip_hash(text, key) if strong else farm_fingerprint(text) for text in texts]
        return np.array(hashes, np.uint64)

    return fingerprints


def _check_sparse(i: int, indices: Array, values: Array, shape: Array) -> None:
    at = f"at position {i}"
    if indices.ndim != 2:
        raise InvalidArgumentError(
            f"Input indices should be a matrix but received shape {shape_text(indices.shape)} {at}"
        )
    if values.ndim != 1:
        raise InvalidArgumentError(
            f"Input values should be a vector but received shape {shape_text(values.shape)} {at}"
        )
    if shape.shape != (2,):
        raise InvalidArgumentError(f"shape should imply a 2D tensor, but got {shape_text(shape.shape)} {at}")
    if len(values) != len(indices):
        raise InvalidArgumentError(f"Expected size of values to be {len(indices)} got {len(values)} {at}")
    columns = f"has {indices.shape[1]} columns {at}"
    require(indices.shape[1] == 2, f"Input indices should have two columns, but the matrix {columns}")
    if shape[0] < 0:
        raise InvalidArgumentError(f"shape must not be negative, but is {shape.tolist()} {at}")
    output_shape((int(shape[0]),), np.dtype(np.int64))  # there is a number for each row


def _columns(count: int, inputs: Sequence[Array]) -> list[CrossedColumn]:
    """The columns of `count` sparse tensors (all indices, all values, all shapes) and of dense ones."""
    sparse = list(zip(inputs[:count], inputs[count : 2 * count], inputs[2 * count : 3 * count], strict=True))
    for i, parts in enumerate(sparse):
        _check_sparse(i, *parts)
    dense = inputs[3 * count :]
    for i, x in enumerate(dense):
        if x.ndim != 2:
            raise InvalidArgumentError(
                f"Dense inputs should be a matrix but received shape {shape_text(x.shape)} at position {i}"
            )
    columns = [*(_sparse_column(*parts) for parts in sparse), *map(_dense_column, dense)]
    rows = [len(column.counts) for column in columns]
    for i, found in enumerate(rows):
        kind, number = ("sparse", i) if i < count else ("dense", i - count)
        require(found == rows[0], f"Expected batch size {rows[0]} got {found} at {kind} tensor {number}")
    return columns


Cross = Callable[[Sequence[CrossedColumn], Sequence[Array]], Array]
"""from columns and the features that each combination picks to the crossed values"""


def _crossed(columns: Sequence[CrossedColumn], cross: Cross, empty: Array) -> tuple[Array, Array, Array]:
    """The crossed features as a sparse matrix."""
    if not columns:
        return np.zeros((0, 2), np.int64), empty, np.zeros(2, np.int64)
    counts, picked = _combinations(columns)
    rows = np.repeat(np.arange(len(counts)), counts)
    numbers = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = np.array([len(counts), counts.max(initial=0)], np.int64)
    return np.stack([rows, numbers], axis=1), cross(columns, picked), shape


def _cross_of(node: Construction) -> tuple[Cross, Array]:
    """The cross that attrs ask for, and its values of no features."""
    buckets, key = node.attrs["num_buckets"], node.attrs["hash_key"]
    if node.attrs["hashed_output"]:
        cross: Cross = lambda columns, picked: _hashed(columns, picked, _plain_fingerprints, buckets, key)  # noqa: E731 - one of two
        return cross, np.zeros(0, np.int64)
    return lambda columns, picked: _joined(columns, picked, b"_X_"), np.zeros(0, object)


@kernel("SparseCross")
def sparse_cross(node: Construction) -> Kernel:
    """Joined by `_X_`, or hashed from a key on."""
    count: int = node.attrs["N"]
    internal = node.attrs["internal_type"]
    for dtype in node.attrs["sparse_types"]:
        refused = internal == DataType.STRING and dtype != DataType.STRING
        if refused:
            raise InvalidArgumentError(
                f"Input values should be of internal type {int(internal)} but received {int(dtype)}"
            )
    cross, empty = _cross_of(node)
    return lambda *inputs: _crossed(_columns(count, inputs), cross, empty)


@kernel("SparseCrossV2")
def sparse_cross_v2(node: Construction) -> Kernel:
    """Joined by a separator."""
    count: int = node.attrs["N"]

    def run(*inputs: Array) -> tuple[Array, Array, Array]:
        if np.ndim(inputs[-1]) != 0:
            raise InvalidArgumentError(
                f"Input separator should be a scalar, not of shape {shape_text(np.shape(inputs[-1]))}"
            )
        separator: bytes = np.asarray(inputs[-1]).item()
        columns = _columns(count, inputs[:-1])
        return _crossed(columns, lambda columns, picked: _joined(columns, picked, separator), np.zeros(0, object))

    return run


@kernel("SparseCrossHashed")
def sparse_cross_hashed(node: Construction) -> Kernel:
    """Hashed, strongly with a key of two numbers or not."""
    count: int = node.attrs["N"]

    def run(*inputs: Array) -> tuple[Array, Array, Array]:
        for value in inputs[-3:-1]:
            require(value.size > 0, "num_buckets and strong_hash must have an element")
        buckets, strong = int(inputs[-3].reshape(-1)[0]), bool(inputs[-2].reshape(-1)[0])
        salt = inputs[-1].reshape(-1).tolist()
        if len(salt) != 2:
            raise InvalidArgumentError(f'Input "salt" must have length 2 but has length {len(salt)}')
        fingerprints = _keyed_fingerprints(strong, (salt[0] & _MASK, salt[1] & _MASK))
        columns = _columns(count, inputs[:-3])

        def cross(columns: Sequence[CrossedColumn], picked: Sequence[Array]) -> Array:
            return _hashed(columns, picked, fingerprints, buckets, None)

        return _crossed(columns, cross, np.zeros(0, np.int64))

    return run


def _ordered(order: bytes, groups: dict[str, list[CrossedColumn]]) -> list[CrossedColumn]:
    """The columns in the order of the attr: R for ragged, S for sparse, D for dense ones."""
    waiting = {kind: iter(columns) for kind, columns in groups.items()}
    require(len(order) == sum(map(len, groups.values())), "Invalid length for input_order")
    columns = []
    for kind in order.decode():
        require(kind in waiting, "Unexpected input_order value.")
        column = next(waiting[kind], None)
        if column is None:
            raise InvalidArgumentError("Invalid input_order")
        columns.append(column)
    return columns


@kernel("RaggedCross")
def ragged_cross(node: Construction) -> Kernel:
    """Ragged, sparse and dense inputs in any order; the result is ragged."""
    attrs = node.attrs
    cross, empty = _cross_of(node)
    split_type = numpy_dtype(node.output_types[1])
    sizes = [len(attrs["ragged_values_types"])] * 2 + [attrs["Nsparse"]] * 3
    limits = np.cumsum([0, *sizes]).tolist()

    def run(*inputs: Array) -> tuple[Array, Any]:
        values, splits, *sparse = (inputs[a:b] for a, b in pairwise(limits))
        for pair in zip(values, splits, strict=True):
            _check_ragged(*pair)
        for number, parts in enumerate(zip(*sparse, strict=True)):
            _check_ragged_sparse(number, *parts)
        _check_batches(splits, sparse[2], inputs[limits[-1] :])
        groups = {
            "R": [_ragged_column(each, ends) for each, ends in zip(values, splits, strict=True)],
            "S": [_sparse_column(*parts) for parts in zip(*sparse, strict=True)],
            "D": [_dense_column(x) for x in inputs[limits[-1] :]],
        }
        columns = _ordered(attrs["input_order"], groups)
        if not columns:
            return empty, np.zeros(1, split_type)
        counts, picked = _combinations(columns)
        return cross(columns, picked), np.concatenate([[0], np.cumsum(counts)]).astype(split_type)

    return run
