"""Tables that are filled with the elements of datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import FailedPreconditionError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, DataType
from partita.graph.protos import GraphDef


def table_of(*columns: Array, types: tuple[DataType, ...] = (DataType.INT64, DataType.FLOAT)) -> GraphDef:
    """`init` fills a table from int64 to float with the rows of columns, `found` looks 3 and 4 up."""
    b = GraphBuilder()
    attrs: dict[str, Any] = {"key_dtype": DataType.INT64, "value_dtype": DataType.FLOAT}
    table = b.op("HashTableV2", attrs=attrs)[0]
    shapes = [column.shape[1:] for column in columns]
    form = {"Toutput_types": list(types), "output_shapes": shapes}
    rows = b.op("TensorSliceDataset", list(columns), attrs=form)
    b.op("InitializeTableFromDataset", table, rows, name="init")
    keys, default = np.array([3, 4], np.int64), np.float32(-1)
    b.op("LookupTableFindV2", table, keys, default, name="found", attrs={"Tin": DataType.INT64, "Tout": DataType.FLOAT})
    return b.graph_def()


async def test_every_element_is_an_entry() -> None:
    """A key and its value."""
    async with open_session(table_of(np.array([3, 5]), np.array([0.5, 1], np.float32)), "cpu:1") as session:
        await session.run([], targets=["init"])
        assert np.asarray((await session.run("found"))[0]).tolist() == [0.5, -1]


@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (table_of(np.array([3]), types=(DataType.INT64,)), InvalidArgumentError, "two output types but it has 1"),
        (
            table_of(np.array([3]), np.array([4]), types=(DataType.INT64, DataType.INT64)),
            InvalidArgumentError,
            "Value dtype expected: float but obtained: int64",
        ),
        (table_of(np.array([[3]]), np.array([[4]], np.float32)), InvalidArgumentError, "should be pairs of scalars"),
        (
            table_of(np.array([3, 3]), np.array([4, 5], np.float32)),
            FailedPreconditionError,
            "different value for same key. Key 3",
        ),
    ],
)
async def test_datasets_of_no_entries_are_refused(graph: GraphDef, error: type[Exception], message: str) -> None:
    """Of one component, of other types, of vectors, or with two values for a key."""
    async with open_session(graph, "cpu:1") as session:
        with pytest.raises(error, match=message):
            await session.run([], targets=["init"])
