"""ParseSingleSequenceExample: one SequenceExample becomes one tensor, or the parts of one, per feature.

Unlike the ops on batches it takes every key as a scalar, refuses an empty feature where a dense one is wanted, and its
errors quote the feature.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name
from ....graph.ops.parsing.feature_columns import NONE, FeatureBytes, column_of, feature_text, sequence_of, steps_of
from ..checks import require, text_of
from ..registry import Construction, Kernel, kernel, outputs
from .column_tensors import filled, longest, places
from .examples import texts
from .sequence_batch import required_list
from .sequences import check_defaults, defined, transposed

_LISTS = {DataType.STRING: "bytes", DataType.FLOAT: "float", DataType.INT64: "int64"}


class _Record:
    """The parsed record and its name, for errors."""

    def __init__(self, record: bytes, name: str) -> None:
        maps = sequence_of(record)
        if maps is None:
            raise InvalidArgumentError(f"Could not parse example input, value: '{record.decode(errors='replace')}'")
        self._context, self._lists = maps
        self._name = name

    def context_sparse(self, key: str, dtype: DataType) -> tuple[Array, Array, Array]:
        """Indices, values and shape."""
        column = column_of([self._checked(self._context.get(key), dtype, f"Context feature: {key}")], dtype)
        return places(column.counts)[:, None], column.values, column.counts

    def context_dense(self, key: str, dtype: DataType, shape: tuple[int, ...], default: Array) -> Array:
        """The values, or the default."""
        piece = self._context.get(key)
        if piece is None:
            require(
                np.size(default) > 0, f"Name: {self._name}, Context feature '{key}' is required but could not be found."
            )
            return np.asarray(default)
        return self._dense(key, [piece], dtype, shape, f"Context feature: {key}")[0, ...]

    def list_sparse(self, key: str, dtype: DataType) -> tuple[Array, Array, Array]:
        """Indices, values and shape: step, number within the step."""
        feature_list = self._lists.get(key)
        steps = [] if feature_list is None else steps_of(feature_list)
        column = column_of(
            [self._checked(step, dtype, f"Feature List: {key}, Index: {i}") for i, step in enumerate(steps)], dtype
        )
        indices = np.stack([np.repeat(np.arange(len(steps)), column.counts), places(column.counts)], axis=1)
        return indices, column.values, np.array([len(steps), longest(column.counts)], np.int64)

    def list_dense(self, key: str, dtype: DataType, shape: tuple[int, ...], may_lack: set[str]) -> Array:
        """[steps, *shape]."""
        feature_list = self._lists.get(key)
        if feature_list is None and key not in may_lack:
            raise required_list(self._name, key)
        steps = [] if feature_list is None else steps_of(feature_list)
        return self._dense(key, steps, dtype, shape, f"Feature list: {key}, Index: {{}}")

    def _dense(self, key: str, pieces: list[bytes], dtype: DataType, shape: tuple[int, ...], place: str) -> Array:
        for i, piece in enumerate(pieces):
            self._checked(piece, dtype, place.format(i), or_empty=False)
        column = column_of(pieces, dtype)
        tensor_size = int(np.prod(shape, dtype=np.int64))
        wrong = np.flatnonzero(column.counts != tensor_size)
        if len(wrong):
            count, sizes = column.counts[wrong[0]], shape_text(shape)
            is_text = dtype == DataType.STRING  # TensorFlow words this one a little differently
            raise InvalidArgumentError(
                f"Name: {self._name}, Key{'' if is_text else ':'} {key}, Index: {wrong[0]}.  Number of {_LISTS[dtype]} "
                f"values != expected.  {'V' if is_text else 'v'}alues size: {count} but output shape: {sizes}"
            )
        return filled(column, shape, np.zeros((), np.int64))

    def _checked(self, piece: FeatureBytes, dtype: DataType, place: str, or_empty: bool = True) -> FeatureBytes:
        """The feature; InvalidArgumentError if it has another type."""
        column = column_of([piece], dtype)
        if column.wrong() is not None or (column.kinds[0] == NONE and not or_empty):
            raise InvalidArgumentError(
                f"Name: {self._name}, {place}.  Data types don't match. Expected type: {dtype_name(dtype)}  "
                f"Feature is: {feature_text(piece or b'')}"
            )
        return piece


def _scalars(inputs: tuple[Array, ...]) -> list[str]:
    return texts([text_of(key, "every key") for key in inputs])


@kernel("ParseSingleSequenceExample")
def parse_single_sequence_example(node: Construction) -> Kernel:
    """One record; keys are inputs."""
    attrs = node.attrs
    context_sparse, context_dense = attrs["context_sparse_types"], attrs["Tcontext_dense"]
    list_sparse, list_dense = attrs["feature_list_sparse_types"], attrs["feature_list_dense_types"]
    context_shapes, list_shapes = defined(attrs["context_dense_shapes"]), defined(attrs["feature_list_dense_shapes"])
    limits = np.cumsum([2, len(context_sparse), len(context_dense), len(list_sparse), len(list_dense)]).tolist()
    default_text = "def_value[{d}].shape() == {default} != context_dense_shapes_[{d}] == {shape}"

    def run(*inputs: Array) -> Any:  # tensors by feature
        serialized, name = text_of(inputs[0], "serialized"), text_of(inputs[-1], "debug_name").decode(errors="replace")
        lacking = np.shape(inputs[1])
        if len(lacking) != 1:
            raise InvalidArgumentError(
                f"feature_list_dense_missing_assumed_empty must be a vector of keys, not of shape {shape_text(lacking)}"
            )
        may_lack = set(texts(inputs[1]))
        keys = [_scalars(inputs[start:end]) for start, end in pairwise(limits)]
        defaults = inputs[limits[-1] : -1]
        check_defaults(context_shapes, defaults, default_text)
        record = _Record(serialized, name)
        sparse = [record.context_sparse(*each) for each in zip(keys[0], context_sparse, strict=True)]
        dense = zip(keys[1], context_dense, context_shapes, defaults, strict=True)
        step_sparse = zip(keys[2], list_sparse, strict=True)
        step_dense = zip(keys[3], list_dense, list_shapes, strict=True)
        return outputs(
            [
                *transposed(sparse, 3),
                *(record.context_dense(*each) for each in dense),
                *transposed([record.list_sparse(*each) for each in step_sparse], 3),
                *(record.list_dense(*each, may_lack) for each in step_dense),
            ]
        )

    return run
