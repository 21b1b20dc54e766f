"""Costs of tables: a hash and a comparison per key, and the bytes of keys and values."""

from __future__ import annotations

from ..host_times import MAKE_NS, QUEUE_NS
from ..op_cost import CostContext, bytes_moved, copied_inputs, copied_outputs, flops, takes_host_time

_HASH = 10
"""operations that hash a key of a word, and compare it with those in its slot"""

takes_host_time(
    MAKE_NS,
    *("AnonymousHashTable", "AnonymousMutableDenseHashTable", "AnonymousMutableHashTable"),
    *("AnonymousMutableHashTableOfTensors", "HashTable", "HashTableV2", "MutableDenseHashTable"),
    *("MutableDenseHashTableV2", "MutableHashTable", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2"),
    "MutableHashTableV2",
)
takes_host_time(QUEUE_NS, "LookupTableSize", "LookupTableSizeV2")

_ENTERS = (
    *("InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2"),
    *("LookupTableInsert", "LookupTableInsertV2", "LookupTableRemoveV2"),
)
_FINDS = ("LookupTableFind", "LookupTableFindV2")
_EXPORTS = ("LookupTableExport", "LookupTableExportV2")


@flops(*_ENTERS, *_FINDS)
def keys(c: CostContext) -> int:
    """A hash per key (input 1)."""
    return _HASH * c.elements_in(1)


bytes_moved(*_ENTERS)(copied_inputs)


@flops(*_EXPORTS)
def exported(c: CostContext) -> int:
    """A look at each slot."""
    return c.elements_out()


bytes_moved(*_EXPORTS)(copied_outputs)
