"""InitializeTableFromDataset: a table that is filled once, with the elements of a dataset of keys and values."""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError, PartitaError
from ....graph.dtypes import Array, dtype_name
from ..checks import require
from ..datasets.dataset import Dataset, PullSteps, dataset_of
from ..datasets.pulling import compute
from ..handles import Element, Handle
from ..registry import Call, Construction, Start, deferred_kernel
from .lookup_table import StaticTable, array_of
from .table_ops import static_table_of


@deferred_kernel("InitializeTableFromDataset")
def initialize_from_dataset(node: Construction) -> Start:
    """Fills a table, one entry for each element."""
    table_of = static_table_of(node)

    def start(call: Call, handle: Handle, variant: Array) -> None:
        table, dataset = table_of(handle), dataset_of(variant)
        _check_form(table, dataset)

        def fill(columns: Element) -> None:
            try:
                table.initialise(*columns)
            except PartitaError as error:
                call.fail(error)
            else:
                call.done()

        compute(call, _columns(table, dataset), fill, node.op)

    return start


def _check_form(table: StaticTable, dataset: Dataset) -> None:
    types = dataset.form.types
    if len(types) != 2:
        raise InvalidArgumentError(f"Dataset should have two output types but it has {len(types)}")
    for what, have, want in zip(("Key", "Value"), types, (table.key_type, table.value_type), strict=True):
        if have != want:
            raise InvalidArgumentError(
                f"{what} dtype expected: {dtype_name(want)} but obtained: {dtype_name(have)} from the dataset"
            )


def _columns(table: StaticTable, dataset: Dataset) -> PullSteps[Element]:
    """All keys and all values."""
    keys, values = [], []
    iterator = dataset.iterator()
    while (element := (yield from iterator.next())) is not None:
        key, value = element
        require(not key.shape and not value.shape, "Dataset elements should be pairs of scalars")
        keys.append(key.item())
        values.append(value.item())
        yield None
    count = (len(keys),)
    return np.asarray(array_of(keys, table.key_type, count)), np.asarray(array_of(values, table.value_type, count))
