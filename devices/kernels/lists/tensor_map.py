"""Maps from tensors to tensors, as variants. A map is never changed: ops give a new one.

Keys are equal if their types, shapes and elements are. The keys of a map are stacked in the order in which they were
first inserted; TensorFlow's order is that of a hash table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, DataType, dtype_name
from ..carried import carried, carrying, sum_of, zeros_like
from ..registry import Construction, Kernel, kernel


@dataclass(frozen=True, slots=True)
class MapEntry:
    """A key with its value, and their types."""

    key: Array
    key_dtype: DataType
    value: Array
    dtype: DataType


@dataclass(frozen=True, slots=True)
class TensorMap:
    """Entries by what makes their keys equal."""

    entries: dict[Hashable, MapEntry] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[MapEntry]) -> TensorMap:
        """A map of entries, of which those with equal keys replace each other."""
        return cls({_identity(entry.key, entry.key_dtype): entry for entry in entries})

    def plus(self, other: TensorMap) -> TensorMap:
        """All entries of both; values with equal keys are added."""
        joint = dict(self.entries)
        for identity, entry in other.entries.items():
            own = joint.get(identity)
            if own is not None:
                entry = MapEntry(own.key, own.key_dtype, sum_of(own.value, entry.value, own.dtype), own.dtype)
            joint[identity] = entry
        return TensorMap(joint)

    def zeros(self) -> TensorMap:
        """The same keys with zeros."""
        return TensorMap(
            {
                identity: MapEntry(entry.key, entry.key_dtype, zeros_like(entry.value, entry.dtype), entry.dtype)
                for identity, entry in self.entries.items()
            }
        )


def _identity(key: Array, dtype: DataType) -> Hashable:
    key = np.asarray(key)
    elements: Hashable = tuple(key.reshape(-1).tolist()) if key.dtype == object else key.tobytes()
    return dtype, key.shape, elements


def _map_of(handle: Array) -> TensorMap:
    return carried(handle, TensorMap, "a map")


def _missing(what: str, key: Array) -> InvalidArgumentError:
    return InvalidArgumentError(f'{what}. Could not find key "{_shown(key)}".')


def _shown(key: Array) -> str:
    key = np.asarray(key)
    text = key.item() if key.ndim == 0 else key.tolist()
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)


@kernel("EmptyTensorMap")
def empty_tensor_map(node: Construction) -> Kernel:
    """A map without keys."""
    empty = carrying(TensorMap())
    return lambda: empty


@kernel("TensorMapSize")
def tensor_map_size(node: Construction) -> Kernel:
    """The number of keys."""
    return lambda handle: np.int32(len(_map_of(handle).entries))


@kernel("TensorMapInsert")
def tensor_map_insert(node: Construction) -> Kernel:
    """The map with a value for a key, in place of the one that it had."""
    _, key_dtype, dtype = node.input_types

    def insert(handle: Array, key: Array, value: Array) -> Array:
        entry = MapEntry(np.asarray(key), key_dtype, np.asarray(value), dtype)
        return carrying(TensorMap({**_map_of(handle).entries, _identity(key, key_dtype): entry}))

    return insert


@kernel("TensorMapLookup")
def tensor_map_lookup(node: Construction) -> Kernel:
    """The value of a key; InvalidArgumentError if there is none, or one of another type."""
    key_dtype, dtype = node.input_types[1], node.output_types[0]

    def look_up(handle: Array, key: Array) -> Array:
        entry = _map_of(handle).entries.get(_identity(key, key_dtype))
        if entry is None:
            raise _missing("Trying to lookup non-existent key", key)
        if entry.dtype != dtype:
            actual, expected = dtype_name(entry.dtype), dtype_name(dtype)
            raise InvalidArgumentError(f"Type mismatch: actual {actual} vs. expect {expected}")
        return entry.value

    return look_up


@kernel("TensorMapErase")
def tensor_map_erase(node: Construction) -> Kernel:
    """The map without a key; InvalidArgumentError if it has none."""
    key_dtype = node.input_types[1]

    def erase(handle: Array, key: Array) -> Array:
        entries, identity = _map_of(handle).entries, _identity(key, key_dtype)
        if identity not in entries:
            raise _missing("Trying to erase non-existent item", key)
        return carrying(TensorMap({other: entry for other, entry in entries.items() if other != identity}))

    return erase


@kernel("TensorMapHasKey")
def tensor_map_has_key(node: Construction) -> Kernel:
    """Whether there is a value for a key."""
    key_dtype = node.input_types[1]
    return lambda handle, key: np.bool_(_identity(key, key_dtype) in _map_of(handle).entries)


@kernel("TensorMapStackKeys")
def tensor_map_stack_keys(node: Construction) -> Kernel:
    """All keys, which must have one type and one shape."""
    dtype = node.output_types[0]

    def stack(handle: Array) -> Array:
        entries = list(_map_of(handle).entries.values())
        if not entries:
            raise InvalidArgumentError("TensorMapStackKeys cannot be called on empty map.")
        if any(entry.key_dtype != dtype for entry in entries):
            raise InvalidArgumentError("Key does not match requested dtype.")
        if any(entry.key.shape != entries[0].key.shape for entry in entries):
            raise InvalidArgumentError("Keys must all have the same shape.")
        return np.stack([entry.key for entry in entries])

    return stack
