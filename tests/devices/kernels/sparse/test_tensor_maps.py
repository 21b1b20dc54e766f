"""Sparse tensors that are kept in a map of the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef

PARTS = np.array([[0, 1], [1, 0], [1, 2]]), np.array([1.5, 2.5, 3.5], np.float32), np.array([2, 3])


def maps() -> GraphDef:
    """`add` puts two rows into a map, `one` a tensor of the same rank, `take` takes those of given numbers."""
    b = GraphBuilder()
    attrs: dict[str, Any] = {"shared_name": b"kept"}
    b.op("AddManySparseToTensorsMap", *PARTS, name="add", attrs=attrs)
    longer = np.array([[4]]), np.array([4.5], np.float32), np.array([5])
    b.op("AddSparseToTensorsMap", *longer, name="one", attrs=attrs)
    numbers = b.placeholder("numbers", "int64", (None,))
    for name, dtype in (("take", DataType.FLOAT), ("other", DataType.INT32)):
        b.op("TakeManySparseFromTensorsMap", numbers, name=name, attrs={**attrs, "dtype": dtype})
    return b.graph_def()


async def test_what_is_taken_is_what_was_added() -> None:
    """In the order of the numbers; the shape has the largest sizes."""
    async with open_session(maps(), "cpu:1") as session:
        assert np.asarray((await session.run("add"))[0]).tolist() == [0, 1]
        assert np.asarray((await session.run("one"))[0]).tolist() == 2
        parts = await session.run(["take:0", "take:1", "take:2"], {"numbers": [2, 1]})
        assert [np.asarray(part).tolist() for part in parts] == [[[0, 4], [1, 0], [1, 2]], [4.5, 2.5, 3.5], [2, 5]]


async def test_nothing_is_taken_twice() -> None:
    """Nor anything that was never there, nor nothing, nor what is of another type."""
    async with open_session(maps(), "cpu:1") as session:
        await session.run("add")
        await session.run("take", {"numbers": [0]})
        for numbers, message in (([0], "Unable to find SparseTensor: 0 in map: kept"), ([], "Must have at least 1")):
            with pytest.raises(InvalidArgumentError, match=message):
                await session.run("take", {"numbers": np.array(numbers, np.int64)})
        with pytest.raises(InvalidArgumentError, match="Requested SparseTensor of type int32"):
            await session.run("other", {"numbers": [1]})
        await session.run("take", {"numbers": [1]})
