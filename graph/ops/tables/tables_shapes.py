"""Shapes of look-up tables: of handles, of numbers of entries, of what is put in.

Flows in: shapes of handles, keys and values. Flows out: shapes; what is found in a table has a shape that its handle
does not tell here. Always holds: handles are scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge, scalar, shape_fn, unknown, with_rank
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
    """A handle."""
    return scalar(c)


@shape_fn("LookupTableSizeV2")
def size(c: ShapeContext) -> Sequence[Shape]:
    """A number, from a handle."""
    with_rank(c.inputs[0], 0)
    return scalar(c)


@shape_fn(
    "LookupTableFindV2", "LookupTableExportV2", "LookupTableInsertV2", "LookupTableRemoveV2", "LookupTableImportV2"
)
def with_handle(c: ShapeContext) -> Sequence[Shape]:
    """Unknown, or no output."""
    with_rank(c.inputs[0], 0)
    return unknown(c)


@shape_fn("InitializeTableV2")
def initialize(c: ShapeContext) -> Sequence[Shape]:
    """No output; as many keys as values."""
    with_rank(c.inputs[0], 0)
    merge(with_rank(c.inputs[1], 1), c.inputs[2])
    return ()


@shape_fn("InitializeTableFromTextFileV2")
def initialize_from_text_file(c: ShapeContext) -> Sequence[Shape]:
    """No output; one file."""
    with_rank(c.inputs[0], 0)
    with_rank(c.inputs[1], 0)
    return ()
