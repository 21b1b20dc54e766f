"""Serialised Examples and SequenceExamples out of Python values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from partita.devices.kernels.strings.each_string import strings
from partita.graph.dtypes import Array, DataType
from partita.graph.protos import Example, Feature, LazyFeatureList, LazySequenceExample

INT64, FLOAT, STRING = DataType.INT64, DataType.FLOAT, DataType.STRING
NUMPY: dict[DataType, np.dtype[Any]] = {
    INT64: np.dtype(np.int64),
    FLOAT: np.dtype(np.float32),
    STRING: np.dtype(object),
}
Values = Sequence[int] | Sequence[float] | Sequence[bytes]


def ints(*values: int) -> Feature:
    """A feature of whole numbers."""
    feature = Feature()
    feature.int64_list.SetInParent()
    feature.int64_list.value.extend(values)
    return feature


def floats(*values: float) -> Feature:
    """A feature of floating-point numbers."""
    feature = Feature()
    feature.float_list.SetInParent()
    feature.float_list.value.extend(values)
    return feature


def texts(*values: bytes) -> Feature:
    """A feature of byte strings."""
    feature = Feature()
    feature.bytes_list.SetInParent()
    feature.bytes_list.value.extend(values)
    return feature


def example(**features: Feature) -> bytes:
    """A serialised Example."""
    message = Example()
    message.features.SetInParent()
    for name, feature in features.items():
        message.features.feature[name].CopyFrom(feature)
    return message.SerializeToString()


def sequence(context: Mapping[str, Feature], lists: Mapping[str, Iterable[Feature]]) -> bytes:
    """A serialised SequenceExample."""
    message = LazySequenceExample()
    for name, feature in context.items():
        message.context.feature[name] = feature.SerializeToString()
    for name, steps in lists.items():
        step_list = LazyFeatureList(feature=[step.SerializeToString() for step in steps])
        message.feature_lists.feature_list[name] = step_list.SerializeToString()
    return message.SerializeToString()


def vector(items: Sequence[bytes]) -> Array:
    """A vector of strings."""
    return strings(items, (len(items),))


def nothing(dtype: DataType) -> Array:
    """The default of a feature that is required."""
    return np.zeros(0, NUMPY[dtype])
