"""ParseSequenceExample and its second version: SequenceExamples become tensors, a batch or a single one at a time.

The first version has its keys as attrs, the second one as inputs, and ragged features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, Shape
from ..checks import require
from ..registry import Construction, Kernel, kernel, outputs
from .examples import texts
from .sequence_batch import SequenceBatch


@dataclass(frozen=True, slots=True)
class FeatureSpecs:
    """The features of the context, or those of the lists: keys, types and shapes."""

    sparse_types: tuple[DataType, ...]
    dense_types: tuple[DataType, ...]
    dense_shapes: tuple[tuple[int, ...], ...]
    ragged_types: tuple[DataType, ...]
    split_types: tuple[DataType, ...]
    sparse_keys: Sequence[str] = ()
    dense_keys: Sequence[str] = ()
    ragged_keys: Sequence[str] = ()

    def keyed(self, what: str, sparse: Any, dense: Any, ragged: Any) -> FeatureSpecs:
        """The same with keys; InvalidArgumentError unless each key is of one sort."""
        keyed = replace(self, sparse_keys=texts(sparse), dense_keys=texts(dense), ragged_keys=texts(ragged))
        sorts = dict.fromkeys(keyed.dense_keys, "dense")
        for sort, keys in (("ragged", keyed.ragged_keys), ("sparse", keyed.sparse_keys)):
            for key in keys:
                other = "ragged" if sorts.get(key) == "ragged" and sort == "sparse" else "dense"
                if sorts.setdefault(key, sort) != sort:
                    raise InvalidArgumentError(f"{what} feature {key} cannot be both {other} and sparse")
        return keyed


def defined(shapes: Sequence[Shape]) -> tuple[tuple[int, ...], ...]:
    """The shapes; InvalidArgumentError unless all sizes are known."""
    known: list[tuple[int, ...]] = []
    for shape in shapes:
        if shape is None or None in shape:
            raise InvalidArgumentError(f"Shape {shape_text(shape)} is not fully defined")
        known.append(tuple(size for size in shape if size is not None))
    return tuple(known)


def _context(attrs: Mapping[str, Any]) -> FeatureSpecs:
    sparse, dense, shapes = attrs["context_sparse_types"], attrs["Tcontext_dense"], attrs["context_dense_shapes"]
    count = attrs["Ncontext_sparse"]
    if count != len(sparse):
        raise InvalidArgumentError(
            f"num_context_sparse ({count}) must match the size of context_sparse_types ({len(sparse)})"
        )
    count = attrs.get("Ncontext_dense", len(dense))
    if not count == len(dense) == len(shapes):
        raise InvalidArgumentError(
            f"num_context_dense ({count}) must match the size of context_dense_types ({len(dense)}) and "
            f"context_dense_shapes ({len(shapes)})"
        )
    ragged, splits = attrs.get("context_ragged_value_types", ()), attrs.get("context_ragged_split_types", ())
    return FeatureSpecs(sparse, dense, defined(shapes), ragged, splits)


def _lists(attrs: Mapping[str, Any]) -> FeatureSpecs:
    sparse, dense = attrs["feature_list_sparse_types"], attrs["feature_list_dense_types"]
    shapes, count = attrs["feature_list_dense_shapes"], attrs["Nfeature_list_sparse"]
    if count != len(sparse):
        raise InvalidArgumentError(
            f"num_feature_list_sparse ({count}) must match the size of feature_list_sparse_types ({len(sparse)})"
        )
    count = attrs["Nfeature_list_dense"]
    if not count == len(dense) == len(shapes):
        raise InvalidArgumentError(
            f"num_feature_list_dense ({count}) must match the size of feature_list_dense_types ({len(dense)}) and "
            f"feature_list_dense_shapes ({len(shapes)})"
        )
    ragged, splits = attrs.get("feature_list_ragged_value_types", ()), attrs.get("feature_list_ragged_split_types", ())
    return FeatureSpecs(sparse, dense, defined(shapes), ragged, splits)


def check_defaults(shapes: Sequence[tuple[int, ...]], defaults: Sequence[Array], text: str) -> None:
    """InvalidArgumentError, which `text` begins with the names of both, unless a default has its feature's shape."""
    for d, (shape, default) in enumerate(zip(shapes, defaults, strict=True)):
        if np.size(default) and np.shape(default) != shape:
            raise InvalidArgumentError(text.format(d=d, default=shape_text(np.shape(default)), shape=shape_text(shape)))


def _batch(serialized: Array, names: Array) -> SequenceBatch:
    shape = np.shape(serialized)
    if len(shape) >= 2:
        raise InvalidArgumentError(f"Expected serialized to be a scalar or vector, got shape: {shape_text(shape)}")
    records: list[bytes] = np.asarray(serialized).reshape(-1).tolist()
    labels: list[bytes] = np.asarray(names).reshape(-1).tolist()
    require(len(labels) in (0, len(records)), "example_names must be empty or have the correct number of elements")
    return SequenceBatch(records, labels, single=not shape)


def transposed(features: Sequence[tuple[Array, ...]], parts: int) -> list[Array]:
    """The first part of all features, then their second part, and so on."""
    return [feature[i] for i in range(parts) for feature in features]


def _context_tensors(batch: SequenceBatch, context: FeatureSpecs, defaults: Sequence[Array]) -> list[Array]:
    sparse = [batch.context_sparse(*each) for each in zip(context.sparse_keys, context.sparse_types, strict=True)]
    dense = [
        batch.context_dense(*each)
        for each in zip(context.dense_keys, context.dense_types, context.dense_shapes, defaults, strict=True)
    ]
    ragged = [
        batch.context_ragged(*each)
        for each in zip(context.ragged_keys, context.ragged_types, context.split_types, strict=True)
    ]
    return [*transposed(sparse, 3), *dense, *transposed(ragged, 2)]


def _list_tensors(batch: SequenceBatch, lists: FeatureSpecs, may_lack: Sequence[bool]) -> list[Array]:
    sparse = [batch.list_sparse(*each) for each in zip(lists.sparse_keys, lists.sparse_types, strict=True)]
    dense = [
        batch.list_dense(*each)
        for each in zip(lists.dense_keys, lists.dense_types, lists.dense_shapes, may_lack, strict=True)
    ]
    ragged = [
        batch.list_ragged(*each) for each in zip(lists.ragged_keys, lists.ragged_types, lists.split_types, strict=True)
    ]
    return [*transposed(sparse, 3), *transposed(dense, 2), *transposed(ragged, 3)]


def _parse(
    batch: SequenceBatch,
    context: FeatureSpecs,
    lists: FeatureSpecs,
    defaults: Sequence[Array],
    may_lack: Sequence[bool],
) -> Any:  # tensors by feature
    text = "default_value[{d}].shape() == {default} != context_dense_shapes[{d}] == {shape}"
    check_defaults(context.dense_shapes, defaults, text)
    return outputs([*_context_tensors(batch, context, defaults), *_list_tensors(batch, lists, may_lack)])


def _check_key_counts(context: FeatureSpecs, lists: FeatureSpecs, may_lack: Sequence[bool]) -> None:
    """InvalidArgumentError unless there is a key for each type."""
    pairs = {
        "context_sparse_keys) to match len(context_sparse_types": (context.sparse_keys, context.sparse_types),
        "context_dense_keys) to match len(Tcontext_dense": (context.dense_keys, context.dense_types),
        "context_ragged_keys) to match len(context_ragged_value_types": (context.ragged_keys, context.ragged_types),
        "feature_list_sparse_keys) to match len(feature_list_sparse_types": (lists.sparse_keys, lists.sparse_types),
        "feature_list_dense_keys) to match len(feature_list_dense_types": (lists.dense_keys, lists.dense_types),
        "feature_list_ragged_keys) to match len(feature_list_ragged_value_types": (
            lists.ragged_keys,
            lists.ragged_types,
        ),
    }
    for what, (keys, types) in pairs.items():
        require(len(keys) == len(types), f"Expected len({what})")
    message = "Expected len(feature_list_dense_missing_assumed_empty to match Nfeature_list_dense"
    require(len(may_lack) == len(lists.dense_types), message)


@kernel("ParseSequenceExample")
def parse_sequence_example(node: Construction) -> Kernel:
    """Keys are attrs."""
    attrs = node.attrs
    context = _context(attrs).keyed("Context", attrs["context_sparse_keys"], attrs["context_dense_keys"], ())
    lists = _lists(attrs).keyed("Sequence", attrs["feature_list_sparse_keys"], attrs["feature_list_dense_keys"], ())
    may_lack = [key in texts(attrs["feature_list_dense_missing_assumed_empty"]) for key in lists.dense_keys]
    _check_key_counts(context, lists, may_lack)

    def run(serialized: Array, names: Array, *defaults: Array) -> Any:  # tensors by feature
        return _parse(_batch(serialized, names), context, lists, defaults, may_lack)

    return run


@kernel("ParseSequenceExampleV2")
def parse_sequence_example_v2(node: Construction) -> Kernel:
    """Keys are inputs."""
    context_features, list_features = _context(node.attrs), _lists(node.attrs)

    def run(serialized: Array, names: Array, *rest: Array) -> Any:  # tensors by feature
        context = context_features.keyed("Context", *rest[:3])
        lists = list_features.keyed("Sequence", *rest[3:6])
        may_lack: list[bool] = np.asarray(rest[6]).reshape(-1).tolist()
        _check_key_counts(context, lists, may_lack)
        return _parse(_batch(serialized, names), context, lists, rest[7:], may_lack)

    return run
