"""Shape functions of look-up tables. The shape of values that are looked up is unknown.

Handles are scalars; in the first version of the ops vectors of two strings.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    scalar,
    shape_fn,
    unknown,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape


@shape_fn(
    "HashTableV2",
    "MutableHashTableV2",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTableV2",
    "AnonymousHashTable",
    "AnonymousMutableHashTable",
    "AnonymousMutableHashTableOfTensors",
    "AnonymousMutableDenseHashTable",
)
def table(c: ShapeContext) -> Sequence[Shape]:
    return scalar(c)


@shape_fn("HashTable", "MutableHashTable", "MutableHashTableOfTensors", "MutableDenseHashTable")
def first_table(c: ShapeContext) -> Sequence[Shape]:
    """A handle of two strings."""
    return ((2,),)


def _check_handle(c: ShapeContext) -> None:
    """InvalidArgumentError unless input 0 may be a handle of the version of the op."""
    if c.op.endswith("V2"):
        with_rank(c.inputs[0], 0)
    else:
        merge_dims(with_rank(c.inputs[0], 1)[0], 2)


@shape_fn("LookupTableSize", "LookupTableSizeV2")
def size(c: ShapeContext) -> Sequence[Shape]:
    _check_handle(c)
    return scalar(c)


@shape_fn("LookupTableExport")
def export(c: ShapeContext) -> Sequence[Shape]:
    """A vector of keys, and their values."""
    _check_handle(c)
    return ((None,), None)


@shape_fn(
    *("LookupTableFindV2", "LookupTableExportV2", "LookupTableInsertV2", "LookupTableRemoveV2"),
    *("LookupTableFind", "LookupTableInsert", "LookupTableImport"),
)
def with_handle(c: ShapeContext) -> Sequence[Shape]:
    """Unknown, or no output."""
    _check_handle(c)
    return unknown(c)


@shape_fn("LookupTableImportV2")
def import_all(c: ShapeContext) -> Sequence[Shape]:
    """No output; a vector of keys, and a value for each."""
    _check_handle(c)
    (count,) = with_rank(c.inputs[1], 1)
    values = with_rank_at_least(c.inputs[2], 1)
    merge_dims(count, None if values is None else values[0])
    return ()


@shape_fn("InitializeTable", "InitializeTableV2")
def initialize(c: ShapeContext) -> Sequence[Shape]:
    """No output; as many keys as values."""
    _check_handle(c)
    merge(with_rank(c.inputs[1], 1), c.inputs[2])
    return ()


@shape_fn("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")
def initialize_from_one(c: ShapeContext) -> Sequence[Shape]:
    """No output; one file."""
    _check_handle(c)
    with_rank(c.inputs[1], 0)
    return ()


@shape_fn("InitializeTableFromDataset")
def initialize_from_dataset(c: ShapeContext) -> Sequence[Shape]:
    """No output."""
    with_rank(c.inputs[0], 0)
    return ()
