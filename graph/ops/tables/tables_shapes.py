"""Shape functions of look-up tables. Handles are scalars; the shape of values that are looked up is unknown."""

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
    return scalar(c)


@shape_fn("LookupTableSizeV2")
def size(c: ShapeContext) -> Sequence[Shape]:
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
