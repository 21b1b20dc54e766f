"""Look-up tables: from keys to values of one type and shape each. An update that is refused changes nothing.

Table          can be filled and emptied at any time
StaticTable    not initialised --initialise--> initialised, and never changed again
DenseTable     two reserved keys mark empty and deleted buckets and cannot be used; keys may be vectors
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from ....errors import AbortedError, FailedPreconditionError, InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, numpy_dtype
from ..checks import require

TABLE_TYPE = "N10tensorflow6lookup15LookupInterfaceE"  # TensorFlow's name for the class of tables in messages

TableKey = Any  # bytes, a number, or a tuple of them: an element of an array of keys as a Python object


def array_of(items: list[Any], dtype: DataType, shape: tuple[int, ...]) -> Array:
    """The items, scalars or rows, as an array of that shape."""
    array = np.empty(shape, numpy_dtype(dtype))
    if items and isinstance(items[0], np.ndarray | tuple):
        rows = array.reshape(len(items), -1)
        for number, item in enumerate(items):
            rows[number] = np.ravel(item) if isinstance(item, np.ndarray) else item
    else:
        array.reshape(-1)[:] = items
    return array


class Table:
    """A table that can be changed. Values are scalars unless there is a `value_shape`."""

    has_default_per_key = True  # else the first one is for all, as in TensorFlow's other tables

    def __init__(self, key_type: DataType, value_type: DataType, value_shape: tuple[int, ...] = ()) -> None:
        self.key_type = key_type
        self.value_type = value_type
        self.value_shape = value_shape
        self._values: dict[TableKey, Any] = {}  # a Python scalar, or an array of the value shape

    def __len__(self) -> int:
        return len(self._values)

    def find(self, keys: Array, default: Array) -> Array:
        """The value of each key; for missing keys `default`, one value or one per key."""
        prefix = self._prefix(keys)
        full = prefix + self.value_shape
        if default.shape not in (self.value_shape, full):
            raise InvalidArgumentError(
                f"Expected shape {shape_text(self.value_shape)} or {shape_text(full)} for default value, "
                f"got {shape_text(default.shape)}"
            )
        self._check_ready()
        items = list(self._keys(keys))
        defaults = self._defaults(default, full, len(items))
        return array_of(
            [self._values.get(key, other) for key, other in zip(items, defaults, strict=True)], self.value_type, full
        )

    def insert(self, keys: Array, values: Array) -> None:
        """Sets the values of keys; for a repeated key the last value counts."""
        self._values.update(self._pairs(keys, values))

    def remove(self, keys: Array) -> None:
        """Removes keys; missing ones are ignored."""
        for key in list(self._keys(keys)):
            self._values.pop(key, None)

    def replace(self, keys: Array, values: Array) -> None:
        """Removes all keys and inserts others."""
        pairs = self._pairs(keys, values)
        self._values = dict(pairs)

    def export(self) -> tuple[Array, Array]:
        """All keys and their values, in the order of insertion."""
        values = array_of(list(self._values.values()), self.value_type, (len(self), *self.value_shape))
        return array_of(list(self._values), self.key_type, (len(self),)), values

    def _pairs(self, keys: Array, values: Array) -> list[tuple[TableKey, Any]]:
        full = self._prefix(keys) + self.value_shape
        if values.shape != full:
            raise InvalidArgumentError(f"Expected shape {shape_text(full)} for value, got {shape_text(values.shape)}")
        items = list(self._keys(keys))
        return list(zip(items, self._items(values, len(items)), strict=True))

    def _check_ready(self) -> None:
        """Raises FailedPreconditionError if the table is not initialised."""

    def _defaults(self, default: Array, shape: tuple[int, ...], count: int) -> list[Any]:
        """A default for each of `count` keys: the first one, unless the table allows one per key."""
        if self.has_default_per_key:
            return self._items(np.broadcast_to(default, shape), count)
        return self._items(default.reshape(-1, *self.value_shape)[:1], 1) * count if count else []

    def _prefix(self, keys: Array) -> tuple[int, ...]:
        """The shape of `keys` without the axes of a single key."""
        return tuple(keys.shape)

    def _keys(self, keys: Array) -> Iterator[TableKey]:
        return iter(np.asarray(keys).reshape(-1).tolist())

    def _items(self, values: Array, count: int) -> list[Any]:
        """The values one by one."""
        return list(values.reshape(count, *self.value_shape)) if self.value_shape else values.reshape(-1).tolist()


class StaticTable(Table):
    """A table of scalars that is filled once."""

    has_default_per_key = False

    def __init__(self, key_type: DataType, value_type: DataType) -> None:
        super().__init__(key_type, value_type)
        self.is_initialised = False

    def _check_ready(self) -> None:
        if not self.is_initialised:
            raise FailedPreconditionError("Table not initialized.")

    def initialise(self, keys: Array, values: Array) -> None:
        """Fills the table; later calls do nothing if they have as many keys.

        Raises FailedPreconditionError for another number of keys and for a key with two values, InvalidArgumentError if
        there are no keys.
        """
        require(keys.size > 0, "keys and values cannot be empty tensors.")
        if self.is_initialised:
            if keys.size != len(self):
                raise FailedPreconditionError("Table was already initialized with different data.")
            return
        entries: dict[TableKey, Any] = {}
        for key, value in self._pairs(keys, values):
            if entries.setdefault(key, value) != value:
                raise FailedPreconditionError(
                    "HashTable has different value for same key. "
                    f"Key {_text(key)} has {_text(entries[key])} and trying to add value {_text(value)}"
                )
        self._values, self.is_initialised = entries, True

    def replace(self, keys: Array, values: Array) -> None:
        """Initialises the table."""
        self.initialise(keys, values)

    def insert(self, keys: Array, values: Array) -> None:
        """Raises UnimplementedError."""
        self._pairs(keys, values)
        raise UnimplementedError("Insert not supported by InitializableLookupTable implementations")

    def remove(self, keys: Array) -> None:
        """Raises UnimplementedError."""
        raise UnimplementedError("Remove not supported by InitializableLookupTable implementations")

    def export(self) -> tuple[Array, Array]:
        """As in `Table`; AbortedError before it is initialised."""
        if not self.is_initialised:
            raise AbortedError("HashTable is not initialized.")
        return super().export()


def _text(item: Any) -> str:  # Any: a Python scalar
    return (
        item.decode("utf-8", "replace")
        if isinstance(item, bytes)
        else f"{item:g}"
        if isinstance(item, float)
        else str(item)
    )


class DenseTable(Table):
    """A table whose buckets are visible: it exports all of them, unused ones too."""

    has_default_per_key = False

    def __init__(
        self,
        empty_key: Array,
        deleted_key: Array,
        types: tuple[DataType, DataType],
        value_shape: tuple[int, ...],
        num_buckets: int,
        max_load_factor: float,
    ) -> None:
        """Raises InvalidArgumentError for keys that are equal or of different shapes, or sizes out of range."""
        if len(value_shape) > 1:
            raise InvalidArgumentError(f"Empty value must be a scalar or a vector, got shape {shape_text(value_shape)}")
        super().__init__(*types, value_shape)
        self.key_shape: tuple[int, ...] = empty_key.shape
        if empty_key.shape != deleted_key.shape:
            raise InvalidArgumentError(
                "Empty and deleted keys must have same shape, "
                f"got shapes: {shape_text(empty_key.shape)} and {shape_text(deleted_key.shape)}"
            )
        self._empty, self._deleted = (self._key(key.reshape(-1).tolist()) for key in (empty_key, deleted_key))
        require(self._empty != self._deleted, "Empty and deleted keys cannot be equal")
        _check_buckets(num_buckets, max_load_factor)
        self._num_buckets = num_buckets
        self._max_load_factor = max_load_factor

    def insert(self, keys: Array, values: Array) -> None:
        """As in `Table`; the number of buckets grows if the load would be too high."""
        pairs = self._pairs(keys, values)
        while len(self) + len(pairs) > self._num_buckets * self._max_load_factor:
            self._num_buckets *= 2
        self._values.update(pairs)

    def replace(self, keys: Array, values: Array) -> None:
        """Replaces the table by buckets in the form that `export` gives."""
        size, width = prod(self.key_shape), prod(self.value_shape)
        if not (keys.ndim == 2 and keys.shape[1] == size and values.shape == (len(keys), width)):
            raise InvalidArgumentError(
                f"Expected key shape [?,{size}] and value shape [?,{width}] for buckets, "
                f"got {shape_text(keys.shape)} and {shape_text(values.shape)}"
            )
        _check_buckets(len(keys), self._max_load_factor)
        items = [self._key(row) for row in keys.tolist()]
        rows = self._items(values, len(items))
        self._values = {k: v for k, v in zip(items, rows, strict=True) if k not in (self._empty, self._deleted)}
        self._num_buckets = len(items)

    def export(self) -> tuple[Array, Array]:
        """Keys and values of all buckets, one row each: used ones first, then unused ones with zeros as values."""
        unused = self._num_buckets - len(self)
        keys = [*self._values, *([self._empty] * unused)]
        nothing: Any = b"" if self.value_type is DataType.STRING else 0
        empty = np.full(self.value_shape, nothing, numpy_dtype(self.value_type)) if self.value_shape else nothing
        values = [*self._values.values(), *([empty] * unused)]
        shapes = (self._num_buckets, prod(self.key_shape)), (self._num_buckets, prod(self.value_shape))
        return array_of(keys, self.key_type, shapes[0]), array_of(values, self.value_type, shapes[1])

    def _prefix(self, keys: Array) -> tuple[int, ...]:
        rank = keys.ndim - len(self.key_shape)
        if not (rank >= 0 and keys.shape[rank:] == self.key_shape):
            raise InvalidArgumentError(
                f"Input key shape {shape_text(keys.shape)} must end with the table's key shape "
                f"{shape_text(self.key_shape)}"
            )
        prefix: tuple[int, ...] = keys.shape[:rank]
        count = prefix[0] if prefix else 1
        expected = (count, *self.key_shape)
        if prod(prefix) != count:
            raise InvalidArgumentError(f"Expected key shape {shape_text(expected)} got {shape_text(keys.shape)}")
        return prefix

    def _key(self, row: list[Any]) -> TableKey:
        return tuple(row) if self.key_shape else row[0]

    def _keys(self, keys: Array) -> Iterator[TableKey]:
        for row in np.asarray(keys).reshape(-1, prod(self.key_shape)).tolist():
            key = self._key(row)
            require(key != self._empty, "Using the empty_key as a table key is not allowed")
            require(key != self._deleted, "Using the deleted_key as a table key is not allowed")
            yield key


def _check_buckets(num_buckets: int, max_load_factor: float) -> None:
    require(
        num_buckets >= 4 and num_buckets & (num_buckets - 1) == 0,
        f"Number of buckets must be at least 4 and a power of 2, got: {num_buckets}",
    )
    require(0 < max_load_factor < 1, f"max_load_factor must be between 0 and 1, got: {max_load_factor:g}")
