"""Batches of elements of different sizes in sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.errors import DataLossError, InvalidArgumentError
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline
from tests.devices.kernels.datasets.test_batching import filled

VARIANT: dict[str, Any] = {"types": [DataType.VARIANT], "shapes": [(3,)]}


def iterated(p: Pipeline, dataset: Tensor) -> GraphDef:
    """As `Pipeline.iterated`; `next` is a sparse tensor."""
    attrs: dict[str, Any] = {"output_types": [DataType.VARIANT], "output_shapes": [(3,)]}
    handle = p.b.op("IteratorV2", attrs={**attrs, "shared_name": b"", "container": b""})[0]
    p.b.op("MakeIterator", dataset, handle, name="init")
    element = p.b.op("IteratorGetNext", handle, attrs=attrs)[0]
    p.b.op("DeserializeSparse", element, name="next", attrs={"dtype": INT64})
    return p.b.graph_def()


def sparse_batches(p: Pipeline, stop: int, size: int, row_shape: list[int]) -> GraphDef:
    """Of the vectors of x times x, for x below `stop`."""
    shape = np.array(row_shape, np.int64)
    return iterated(p, p.op("DenseToSparseBatchDataset", filled(p, stop), np.int64(size), shape, **VARIANT))


@settings(max_examples=15)
@given(st.integers(1, 6), st.integers(1, 4), st.sampled_from([-1, 7]))
async def test_rows_of_a_sparse_batch_are_the_elements(stop: int, size: int, length: int) -> None:
    """The last batch is smaller; a row is as long as the longest one, or as declared."""
    async with open_session(sparse_batches(Pipeline(), stop, size, [length]), "cpu:1") as session:
        await session.run([], targets=["init"])
        for first in range(0, stop, size):
            rows = range(first, min(first + size, stop))
            indices, values, shape = await session.run(["next:0", "next:1", "next:2"])
            assert indices.tolist() == [[row - first, place] for row in rows for place in range(row)]
            assert values.tolist() == [row for row in rows for _ in range(row)]
            assert shape.tolist() == [len(rows), length if length > 0 else max(rows)]


@pytest.mark.parametrize(
    ("row_shape", "error", "message"),
    [
        ([1], DataLossError, r"Input element had shape \(\[2\]\) that is larger than the row shape \(\[1\]\)"),
        ([4, 2], InvalidArgumentError, r"had shape \(\[0\]\) that is incompatible with the row shape \(\[4,2\]\)"),
    ],
)
async def test_elements_that_do_not_fit_a_row_are_refused(
    row_shape: list[int], error: type[Exception], message: str
) -> None:
    """They are too long, or of another rank; the messages are TensorFlow's."""
    async with open_session(sparse_batches(Pipeline(), 3, 3, row_shape), "cpu:1") as session:
        await session.run([], targets=["init"])
        with pytest.raises(error, match=message):
            await session.run("next")


async def test_a_batch_has_elements() -> None:
    """A size of 0 is refused."""
    async with open_session(sparse_batches(Pipeline(), 3, 0, [3]), "cpu:1") as session:
        with pytest.raises(InvalidArgumentError, match="Batch size must be greater than zero"):
            await session.run([], targets=["init"])
