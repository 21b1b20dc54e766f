"""ParseExample and its relatives: serialised Examples become one tensor, or the parts of one, per feature.

A feature is dense (the same number of values in every record, or a number that varies, padded at the end), sparse or
ragged. Of a batch of n records the dense tensor is [n, *shape]; a single record gives the tensor without that axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, Shape, dtype_name, numpy_dtype
from ....graph.ops.parsing.feature_columns import NONE, TYPES, FeatureColumn, column_of, features_of
from ..checks import require, single_of, text_of
from ..registry import Construction, Kernel, kernel, outputs
from .column_tensors import filled, longest, padded, sparse_parts, splits_of

_LISTS = {DataType.STRING: "bytes", DataType.FLOAT: "float", DataType.INT64: "int64"}


@dataclass(frozen=True, slots=True)
class Schema:
    """The types and shapes of the features, in the order of the outputs."""

    sparse_types: tuple[DataType, ...]
    dense_types: tuple[DataType, ...]
    dense_shapes: tuple[tuple[int | None, ...], ...]
    ragged_types: tuple[DataType, ...] = ()
    split_types: tuple[DataType, ...] = ()


def schema_of(node: Construction) -> Schema:
    """The schema in the attrs; InvalidArgumentError unless at most the first size of each shape is unknown."""
    attrs = node.attrs
    shapes: tuple[Shape, ...] = attrs["dense_shapes"]
    require(len(attrs["Tdense"]) == len(shapes), "len(dense_keys) != len(dense_shapes)")
    known: list[tuple[int | None, ...]] = []
    for d, shape in enumerate(shapes):
        if shape is None or None in shape[1:]:
            raise InvalidArgumentError(
                f"dense_shapes[{d}] has unknown rank or unknown inner dimensions: {shape_text(shape)}"
            )
        known.append(shape)
    ragged, splits = attrs.get("ragged_value_types", ()), attrs.get("ragged_split_types", ())
    require(len(ragged) == len(splits), "len(ragged_value_types) != len(ragged_split_types)")
    return Schema(attrs["sparse_types"], attrs["Tdense"], tuple(known), ragged, splits)


def _check_defaults(schema: Schema, defaults: tuple[Array, ...]) -> None:
    for d, (shape, default) in enumerate(zip(schema.dense_shapes, defaults, strict=True)):
        given = np.shape(default)
        if shape[:1] == (None,):
            if prod(given) != 1:
                raise InvalidArgumentError(
                    f"dense_shape[{d}] is a variable length shape: {shape_text(shape)}, therefore def_value[{d}] must "
                    f"contain a single element (the padding element).  But its shape is: {shape_text(given)}"
                )
        elif prod(given) and given != shape:
            raise InvalidArgumentError(
                f"def_value[{d}].shape() == {shape_text(given)} is not compatible with dense_shapes_[{d}] == "
                f"{shape_text(shape)}"
            )


class ParsedRecords:
    """Parsed records, asked for one feature after the other; errors name the record, if there may be several."""

    def __init__(self, records: list[bytes], names: list[bytes] | None) -> None:
        """`names` has one name for each record, or none; None if there is a single record, which has no batch axis."""
        self._maps = [features_of(record) for record in records]
        self._names = names
        self._single = names is None

    def sparse(self, key: str, dtype: DataType) -> tuple[Array, Array, Array]:
        """Indices, values and shape of a sparse feature."""
        indices, values, shape = sparse_parts(self._column(key, dtype))
        return (indices[:, 1:], values, shape[1:]) if self._single else (indices, values, shape)

    def ragged(self, key: str, dtype: DataType, splits: DataType) -> tuple[Array, Array]:
        """Values and row splits of a ragged feature; a single record has no splits."""
        column = self._column(key, dtype)
        split_type = numpy_dtype(splits)
        return column.values, np.zeros(0, split_type) if self._single else splits_of(column.counts, split_type)

    def dense(self, key: str, dtype: DataType, shape: tuple[int | None, ...], default: Array) -> Array:
        """A dense feature; its first size may be unknown."""
        column = self._column(key, dtype, is_dense=True)
        tensor = self._variable(key, column, shape[1:], default) if shape[:1] == (None,) else None
        if tensor is None:
            tensor = self._fixed(key, column, dtype, shape, default)
        return tensor[0, ...] if self._single else tensor

    def _column(self, key: str, dtype: DataType, is_dense: bool = False) -> FeatureColumn:
        column = column_of([features.get(key) for features in self._maps], dtype)
        wrong = column.wrong()
        if wrong is None:
            return column
        expected, actual = dtype_name(dtype), dtype_name(TYPES[column.kinds[wrong]])
        text = f"Expected type: {expected}, Actual type: {actual}"
        if is_dense:
            text = f"Data type: {actual} but expected type: {expected}"
        raise InvalidArgumentError(f"{self._place(key, wrong)}Data types don't match. {text}")

    def _fixed(self, key: str, column: FeatureColumn, dtype: DataType, shape: Any, default: Array) -> Array:
        size = prod(shape)
        if size and (column.counts == size).all():
            return column.values.reshape(len(column.counts), *shape)
        wrong = np.flatnonzero((column.counts != size) & (np.array(column.kinds) != NONE))
        if len(wrong):
            raise self._wrong_count(key, int(wrong[0]), column, dtype, shape)
        if not np.size(default) and NONE in column.kinds:
            name = "" if self._single else f"Name: {self._name(column.kinds.index(NONE))}, "
            raise InvalidArgumentError(
                f"{name}Feature: {key} (data type: {dtype_name(dtype)}) is required but could not be found."
            )
        return filled(column, shape, default)

    def _wrong_count(
        self, key: str, record: int, column: FeatureColumn, dtype: DataType, shape: Any
    ) -> InvalidArgumentError:
        text = (
            f"Number of {_LISTS[dtype]} values != expected.  Values size: {column.counts[record]} but output shape: "
            f"{shape_text(shape)}"
        )
        if self._single:
            surplus = dtype == DataType.STRING and column.counts[record] > prod(shape)
            what = "Parsing bytes_list failed." if surplus else f"Some {_LISTS[dtype]}_list slice was not parsed."
            text = f"Can't parse serialized Example: {what}"
        return InvalidArgumentError(f"{self._place(key, record)}{text}")

    def _variable(self, key: str, column: FeatureColumn, inner: Any, default: Array) -> Array:
        """Records padded to the longest one."""
        stride = prod(inner)
        wrong = np.flatnonzero(column.counts % stride) if stride else np.flatnonzero(column.counts)
        if len(wrong):
            raise self._wrong_stride(key, int(wrong[0]), column, inner)
        rows = longest(column.counts) // stride if stride else 0
        result = np.empty((len(column.counts), rows, *inner), column.values.dtype)
        result[...] = np.asarray(default).reshape(-1)[0]
        return padded(column.values, column.counts, result)

    def _wrong_stride(self, key: str, record: int, column: FeatureColumn, inner: Any) -> InvalidArgumentError:
        count = column.counts[record]
        if self._single:
            return InvalidArgumentError(
                f"Error while parsing feature with key {key}: number of elements should be divisible by "
                f"{prod(inner)}, found {count} instead"
            )
        return InvalidArgumentError(
            f"{self._place(key, record)}Number of {_LISTS[TYPES[column.kind]]} values is not a multiple of stride "
            f"length. Saw {count} values but output shape is: {shape_text((None, *inner))}"
        )

    def _name(self, record: int) -> str:
        return self._names[record].decode(errors="replace") if self._names else "<unknown>"

    def _place(self, key: str, record: int) -> str:
        return f"Key: {key}.  " if self._single else f"Name: {self._name(record)}, Key: {key}, Index: {record}.  "


Keys = tuple[list[str], list[str], list[str]]
"""names of the sparse, the dense and the ragged features"""


class FeatureTensors(NamedTuple):
    """The tensors of every feature, in the order of the keys."""

    sparse: list[tuple[Array, Array, Array]]  # indices, values, shape
    dense: list[Array]
    ragged: list[tuple[Array, Array]]  # values, splits


def parsed(schema: Schema, batch: ParsedRecords, keys: Keys, defaults: Sequence[Array]) -> FeatureTensors:
    """All features of a batch."""
    sparse_keys, dense_keys, ragged_keys = keys
    return FeatureTensors(
        [batch.sparse(*feature) for feature in zip(sparse_keys, schema.sparse_types, strict=True)],
        [
            batch.dense(*feature)
            for feature in zip(dense_keys, schema.dense_types, schema.dense_shapes, defaults, strict=True)
        ],
        [batch.ragged(*feature) for feature in zip(ragged_keys, schema.ragged_types, schema.split_types, strict=True)],
    )


def _parse(schema: Schema, batch: ParsedRecords, keys: Keys, defaults: Sequence[Array]) -> Any:
    """Sparse indices, values, shapes, dense tensors, ragged values, splits."""
    sparse, dense, ragged = parsed(schema, batch, keys, defaults)
    parts = [part for i in range(3) for part in (feature[i] for feature in sparse)]
    return outputs([*parts, *dense, *(part for i in range(2) for part in (feature[i] for feature in ragged))])


def texts(keys: Any) -> list[str]:  # an array or a list of bytes
    """Keys as the names in maps; bytes that are not UTF-8 match no name."""
    return [
        key.decode(errors="replace") for key in (keys.reshape(-1).tolist() if isinstance(keys, np.ndarray) else keys)
    ]


def check_keys(schema: Schema, keys: Keys, defaults: tuple[Array, ...]) -> None:
    """InvalidArgumentError unless there is a type for each key, and defaults fit the shapes."""
    types = (schema.sparse_types, schema.dense_types, schema.ragged_types)
    for what, names, declared in zip(("sparse", "dense", "ragged"), keys, types, strict=True):
        if len(names) != len(declared):
            raise InvalidArgumentError(
                f"Expected len({what}_keys) == len({what}_types) but got: {len(names)} vs. {len(declared)}"
            )
    _check_defaults(schema, defaults)


def _batch(serialized: Array, names: Array) -> ParsedRecords:
    """The records; those of a vector are a batch, a scalar is a single one."""
    shapes = np.shape(names), np.shape(serialized)
    if prod(shapes[0]) and shapes[0] != shapes[1]:
        raise InvalidArgumentError(
            "Expected names have the same shape as serialized: name.shape="
            f"{shape_text(shapes[0])}, serialized.shape={shape_text(shapes[1])}"
        )
    records = np.asarray(serialized).reshape(-1).tolist()
    return ParsedRecords(records, np.asarray(names).reshape(-1).tolist() if shapes[1] else None)


@kernel("ParseExample")
def parse_example(node: Construction) -> Kernel:
    """A batch; the keys are scalars."""
    schema = schema_of(node)
    sparse_end = 2 + len(schema.sparse_types)
    dense_end = sparse_end + len(schema.dense_types)

    def run(serialized: Array, names: Array, *rest: Array) -> Any:  # tensors by feature
        rank = np.ndim(serialized)
        if rank != 1:
            raise InvalidArgumentError(
                f"Expected serialized to be a vector, got shape: {shape_text(np.shape(serialized))}"
            )
        flat = [single_of(np.asarray(key), "every key") for key in rest[: dense_end - 2]]
        keys = texts(flat[: sparse_end - 2]), texts(flat[sparse_end - 2 :]), list[str]()
        defaults = rest[dense_end - 2 :]
        check_keys(schema, keys, defaults)
        return _parse(schema, _batch(serialized, names), keys, defaults)

    return run


@kernel("ParseExampleV2")
def parse_example_v2(node: Construction) -> Kernel:
    """A batch or a single record; the keys are vectors."""
    schema = schema_of(node)
    known: tuple[Array, ...] = ()  # keys and defaults that were checked last, if they are constants
    keys: Keys = [], [], []

    def run(serialized: Array, names: Array, sparse: Array, dense: Array, ragged: Array, *defaults: Array) -> Any:
        nonlocal known, keys
        shape = np.shape(serialized)
        if len(shape) >= 2:
            raise InvalidArgumentError(f"Expected serialized to be a scalar or vector, got shape: {shape_text(shape)}")
        given = sparse, dense, ragged, *defaults
        if len(known) != len(given) or not all(map(is_, known, given)):
            keys = texts(sparse), texts(dense), texts(ragged)
            check_keys(schema, keys, defaults)
            known = () if any(np.asarray(x).flags.writeable for x in given) else given
        return _parse(schema, _batch(serialized, names), keys, defaults)

    return run


@kernel("ParseSingleExample")
def parse_single_example(node: Construction) -> Kernel:
    """A single record; the keys are attrs."""
    keys = texts(node.attrs["sparse_keys"]), texts(node.attrs["dense_keys"]), list[str]()
    require(len(keys[1]) == len(node.attrs["Tdense"]), "len(dense_keys) != len(dense_types)")
    require(len(keys[0]) == len(node.attrs["sparse_types"]), "len(sparse_keys) != len(sparse_types)")
    schema = schema_of(node)

    def run(serialized: Array, *defaults: Array) -> Any:  # tensors by feature
        _check_defaults(schema, defaults)
        return _parse(schema, ParsedRecords([text_of(serialized, "serialized")], None), keys, defaults)

    return run
