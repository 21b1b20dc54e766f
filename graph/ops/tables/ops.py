"""The ops of look-up tables.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp, ReadsHandle, State

OPS: FactsByOp = {
    "AnonymousHashTable": {"state": State.TABLE, "hides_shape": True},
    "AnonymousMutableDenseHashTable": {"state": State.TABLE, "key_shape_input": 0},
    "AnonymousMutableHashTable": {"state": State.TABLE},
    "AnonymousMutableHashTableOfTensors": {"state": State.TABLE},
    "HashTable": {"state": State.TABLE, "is_flat": True},
    "HashTableV2": {"state": State.TABLE, "is_flat": True, "hides_shape": True},
    "InitializeTable": {"state": State.TABLE, "is_flat": True},
    "InitializeTableFromDataset": {"state": State.TABLE, "waits": True, "is_flat": True},
    "InitializeTableFromTextFile": {"state": State.TABLE, "is_flat": True},
    "InitializeTableFromTextFileV2": {"state": State.TABLE, "is_flat": True},
    "InitializeTableV2": {"state": State.TABLE, "is_flat": True},
    "LookupTableExport": {"state": State.TABLE},
    "LookupTableExportV2": {"state": State.TABLE},
    "LookupTableFind": {"state": State.TABLE, "is_flat": True},
    "LookupTableFindV2": {"state": State.TABLE, "is_flat": True, "reads_handle": ReadsHandle.ELEMENTS},
    "LookupTableImport": {"state": State.TABLE},
    "LookupTableImportV2": {"state": State.TABLE},
    "LookupTableInsert": {"state": State.TABLE, "is_flat": True},
    "LookupTableInsertV2": {"state": State.TABLE, "is_flat": True},
    "LookupTableRemoveV2": {"state": State.TABLE},
    "LookupTableSize": {"state": State.TABLE, "is_flat": True},
    "LookupTableSizeV2": {"state": State.TABLE, "is_flat": True},
    "MutableDenseHashTable": {"state": State.TABLE, "is_flat": True},
    "MutableDenseHashTableV2": {"state": State.TABLE, "is_flat": True, "key_shape_input": 0},
    "MutableHashTable": {"state": State.TABLE, "is_flat": True},
    "MutableHashTableOfTensors": {"state": State.TABLE, "is_flat": True},
    "MutableHashTableOfTensorsV2": {"state": State.TABLE, "is_flat": True},
    "MutableHashTableV2": {"state": State.TABLE, "is_flat": True},
}
