"""Ops on look-up tables: making, filling and querying them.

A named table is one per device, shared by all nodes, and lives as long as the session; an anonymous one is carried by
its handle. In the first version of the ops handles are references to two strings, otherwise resources.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name
from ...state import DEFAULT_CONTAINER, ResourceHandle, Variable
from ..carried import carrying
from ..checks import require
from ..handles import Handle, handle_value, resource_of
from ..registry import Construction, Kernel, kernel
from .lookup_table import TABLE_TYPE, DenseTable, StaticTable, Table
from .vocabulary import Vocabulary

MakeTable = Callable[[], Table]


def _types(node: Construction) -> tuple[DataType, DataType]:
    return DataType(node.attrs["key_dtype"]), DataType(node.attrs["value_dtype"])


def _value_shape(node: Construction) -> tuple[int, ...]:
    """The shape of values; an unknown shape counts as a scalar."""
    shape = node.attrs.get("value_shape") or ()
    if None in shape:
        raise InvalidArgumentError(f"value_shape must be fully known, got {shape_text(shape)}")
    return tuple(shape)


def _named(node: Construction) -> Callable[[MakeTable], Handle]:
    """A function from a way to make a table to the handle of this node's table, which is made on first use."""
    shared = node.attrs["shared_name"].decode()
    own = node.name if node.attrs["use_node_name_sharing"] else node.state.private_name(node.name)
    container = node.attrs["container"].decode() or DEFAULT_CONTAINER
    handle = ResourceHandle(node.device, container, shared or own, TABLE_TYPE)
    value, state, types = handle_value(node, handle), node.state, _types(node)

    def handle_for(make: MakeTable) -> Handle:
        table = state.resource(handle.key, make)
        if (table.key_type, table.value_type) != types:
            raise InvalidArgumentError(
                f"Conflicting key/value dtypes {dtype_name(types[0])}->{dtype_name(types[1])} with "
                f"{dtype_name(table.key_type)}-{dtype_name(table.value_type)} for table {handle.name}"
            )
        return value

    return handle_for


@kernel("HashTable", "HashTableV2")
def hash_table(node: Construction) -> Kernel:
    """The handle of a table that is filled once."""
    handle_for, types = _named(node), _types(node)
    return lambda: handle_for(lambda: StaticTable(*types))


@kernel("MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2")
def mutable_hash_table(node: Construction) -> Kernel:
    """The handle of a table that can be changed."""
    handle_for, types, shape = _named(node), _types(node), _value_shape(node)
    return lambda: handle_for(lambda: Table(*types, shape))


def _dense(node: Construction) -> Callable[[Array, Array], Table]:
    """A function from an empty and a deleted key to a new table."""
    attrs, types, shape = node.attrs, _types(node), _value_shape(node)
    buckets, load = int(attrs["initial_num_buckets"]), float(attrs["max_load_factor"])
    return lambda empty, deleted: DenseTable(np.asarray(empty), np.asarray(deleted), types, shape, buckets, load)


@kernel("MutableDenseHashTableV2")
def dense_hash_table(node: Construction) -> Kernel:
    """The handle of a table with two reserved keys."""
    handle_for, make = _named(node), _dense(node)
    return lambda empty, deleted: handle_for(lambda: make(empty, deleted))


@kernel("MutableDenseHashTable")
def first_dense_hash_table(node: Construction) -> Kernel:
    """Refused, as by TensorFlow, whose kernel wants a deleted key: the first version has no input for one."""

    def refuse(empty: Array) -> None:
        raise InvalidArgumentError("Unknown input name: deleted_key")

    return refuse


@kernel("AnonymousHashTable")
def anonymous_hash_table(node: Construction) -> Kernel:
    """A new table that is filled once."""
    types = _types(node)
    return lambda: carrying(StaticTable(*types))


@kernel("AnonymousMutableHashTable", "AnonymousMutableHashTableOfTensors")
def anonymous_mutable_hash_table(node: Construction) -> Kernel:
    """A new table that can be changed."""
    types, shape = _types(node), _value_shape(node)
    return lambda: carrying(Table(*types, shape))


@kernel("AnonymousMutableDenseHashTable")
def anonymous_dense_hash_table(node: Construction) -> Kernel:
    """A new table with two reserved keys."""
    make = _dense(node)
    return lambda empty, deleted: carrying(make(empty, deleted))


def _table_of(node: Construction) -> Callable[[Handle], Table]:
    """A function from a handle to its table on the node's device; it raises NotFoundError if there is none."""
    named = resource_of(node, Table, TABLE_TYPE, "a table")

    def find(value: Handle) -> Table:
        carried_value = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
        return carried_value if isinstance(carried_value, Table) else named(value)

    return find


def _checked_table_of(node: Construction) -> Callable[[Handle], Table]:
    """As `_table_of`; InvalidArgumentError unless keys and values of the node are of the table's types."""
    find, handle_type, inputs, outputs = _table_of(node), node.input_types[0], node.input_types[1:], node.output_types
    node_types = inputs or outputs

    def checked(handle: Handle) -> Table:
        table = find(handle)
        types = table.key_type, table.value_type
        if node_types != types[: len(node_types)]:
            own_types = types[: len(inputs)], types if not inputs else types[1:] * len(outputs)
            have, expected = _signature(handle_type, inputs, outputs), _signature(handle_type, *own_types)
            raise InvalidArgumentError(f"Signature mismatch, have: {have} expected: {expected}")
        return table

    return checked


def _signature(handle: DataType, inputs: tuple[DataType, ...], outputs: tuple[DataType, ...]) -> str:
    """The types as messages show them: "resource, string, int64->int64"."""
    return f"{', '.join(map(dtype_name, (handle, *inputs)))}->{', '.join(map(dtype_name, outputs))}"


@kernel("LookupTableFind", "LookupTableFindV2")
def find(node: Construction) -> Kernel:
    """The value of each key."""
    table_of = _checked_table_of(node)
    return lambda handle, keys, default: table_of(handle).find(np.asarray(keys), np.asarray(default))


@kernel("LookupTableInsert", "LookupTableInsertV2")
def insert(node: Construction) -> Kernel:
    """Sets the values of keys."""
    table_of = _checked_table_of(node)
    return lambda handle, keys, values: table_of(handle).insert(np.asarray(keys), np.asarray(values))


@kernel("LookupTableImport", "LookupTableImportV2")
def replace(node: Construction) -> Kernel:
    """Removes all keys and inserts others."""
    table_of = _checked_table_of(node)
    return lambda handle, keys, values: table_of(handle).replace(np.asarray(keys), np.asarray(values))


@kernel("LookupTableRemoveV2")
def remove(node: Construction) -> Kernel:
    """Removes keys."""
    table_of = _checked_table_of(node)
    return lambda handle, keys: table_of(handle).remove(np.asarray(keys))


@kernel("LookupTableExport", "LookupTableExportV2")
def export(node: Construction) -> Kernel:
    """All keys and values."""
    table_of = _checked_table_of(node)
    return lambda handle: table_of(handle).export()


@kernel("LookupTableSize", "LookupTableSizeV2")
def size(node: Construction) -> Kernel:
    """How many keys there are."""
    table_of = _table_of(node)
    return lambda handle: np.int64(len(table_of(handle)))


def static_table_of(node: Construction) -> Callable[[Handle], StaticTable]:
    """A function from a handle to its table; InvalidArgumentError unless that is one that is filled once."""
    find = _table_of(node)

    def checked(handle: Handle) -> StaticTable:
        table = find(handle)
        if not isinstance(table, StaticTable):
            raise InvalidArgumentError(f"Table {_name(handle)} is not initializable")
        return table

    return checked


def _name(handle: Handle) -> str:
    """Container and name of a table, for messages."""
    if isinstance(handle, Variable):
        return " ".join(text.decode() for text in handle.read().tolist())
    carried = handle.item()
    return f"{carried.container} {carried.name}" if isinstance(carried, ResourceHandle) else "without a name"


@kernel("InitializeTable", "InitializeTableV2")
def initialize(node: Construction) -> Kernel:
    """Fills a table that is filled once."""
    static, checked = static_table_of(node), _checked_table_of(node)

    def fill(handle: Handle, keys: Array, values: Array) -> None:
        table = static(handle)
        checked(handle)
        if keys.ndim != 1:
            raise InvalidArgumentError(f"Keys must be a vector, but received shape{shape_text(keys.shape)}")
        require(keys.size == values.size, f"Keys and values must have the same size {keys.size} vs {values.size}")
        table.initialise(keys, values)

    return fill


@kernel("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")
def initialize_from_text_file(node: Construction) -> Kernel:
    """Fills a table that is filled once, from a file with a line per entry."""
    table_of, attrs = static_table_of(node), node.attrs
    lines = int(attrs["vocab_size"])
    vocabulary = Vocabulary(
        int(attrs["key_index"]),
        int(attrs["value_index"]),
        None if lines < 0 else lines,
        attrs["delimiter"],
        int(attrs["offset"]),
    )

    def fill(handle: Handle, path: Array) -> None:
        if path.ndim != 0:
            raise InvalidArgumentError(f"filename should be a single string, but got {shape_text(path.shape)}")
        table = table_of(handle)
        table.initialise(*vocabulary.read(os.fsdecode(path.item()), table.key_type, table.value_type))

    return fill
