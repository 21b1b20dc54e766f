"""Functions of batches, whose sizes are allowed ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.errors import FailedPreconditionError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, DataType
from partita.graph.protos import GraphDef
from tests.function_defs import func_attr, function_of

INT64 = DataType.INT64


def calling(body: str, *allowed: int, largest: int = 4, splits: bool = False) -> GraphDef:
    """`out` calls a function of rows: "sums" adds the sum of the batch to each row, "sum" is the sum alone."""
    f = GraphBuilder()
    x, w = f.placeholder("x", "int64", (None,)), f.placeholder("w", "int64", ())
    total = f.op("Sum", x, np.int32(0), name="sum")[0]
    f.op("AddV2", f.op("Mul", x, w)[0], total, name="sums")
    b = GraphBuilder()
    b.function(function_of("f", f.graph_def(), ["x:0", "w:0"], [f"{body}:0"]))
    sizes = {"max_batch_size": largest, "allowed_batch_sizes": list(allowed), "enable_large_batch_splitting": splits}
    attrs: dict[str, Any] = {"f": func_attr("f"), "num_batch_threads": 1, "batch_timeout_micros": 1000, "Tout": [INT64]}
    rows = b.placeholder("rows", "int64", None)
    b.op("BatchFunction", [rows], [np.int64(100)], name="out", attrs={**attrs, **sizes})
    return b.graph_def()


async def result(graph: GraphDef, rows: Array) -> Any:
    async with open_session(graph, "cpu:1") as session:
        return np.asarray((await session.run("out", {"rows": rows}))[0]).tolist()


@settings(max_examples=20)
@given(st.lists(st.integers(0, 9), max_size=9), st.booleans())
async def test_a_batch_is_split_and_padded_with_its_first_row(rows: list[int], pads: bool) -> None:
    """The function sees the rows of each piece, and copies of the first of them up to an allowed size."""
    expected = []
    for first in range(0, len(rows), 4):
        piece = rows[first : first + 4]
        size = next(size for size in (2, 4) if size >= len(piece)) if pads else len(piece)
        total = sum(piece) + (size - len(piece)) * piece[0]
        expected += [100 * row + total for row in piece]
    graph = calling("sums", *((2, 4) if pads else ()), splits=True)
    assert await result(graph, np.array(rows, np.int64)) == expected


async def test_what_is_no_batch_is_refused() -> None:
    """A scalar, and more rows than a batch may have; the messages are TensorFlow's."""
    with pytest.raises(InvalidArgumentError, match="Batching input tensors must have at least one dimension"):
        await result(calling("sums"), np.array(1))
    with pytest.raises(InvalidArgumentError, match="Task size 6 is larger than maximum input batch size 4"):
        await result(calling("sums"), np.arange(6))
    with pytest.raises(InvalidArgumentError, match="final entry in allowed_batch_sizes must equal max_batch_size"):
        await result(calling("sums", 2, 3), np.arange(2))


async def test_results_have_a_row_for_each_row() -> None:
    """A scalar has none."""
    with pytest.raises(FailedPreconditionError, match="Batched output tensor has 0 dimensions"):
        await result(calling("sum"), np.arange(3))
