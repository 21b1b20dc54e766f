"""Datasets of the features of batches of Examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef
from tests.devices.kernels.parsing.records import FLOAT, INT64, STRING, example, floats, ints, texts, vector

RECORDS = [example(x=floats(1.5, 2.5), y=ints(4), t=texts(b"a")), example(x=floats(3.5), y=ints(5), t=texts())]
TYPES = [INT64, DataType.VARIANT, DataType.VARIANT, INT64]
SHAPES = [(None, 1), (3,), (), (None, 1)]


def parsed(b: GraphBuilder, records: list[bytes], op: str) -> Tensor:
    """Of each pair of records: d, which is missing, the sparse t, the ragged x and the dense y."""
    form: dict[str, Any] = {"output_types": [STRING], "output_shapes": [()]}
    rows = b.op("TensorSliceDataset", [vector(records)], attrs={"Toutput_types": [STRING], "output_shapes": [()]})
    batches = b.op("BatchDataset", rows, np.int64(2), attrs=form | {"output_shapes": [(None,)]})
    attrs = {
        "sparse_keys": [b"t"],
        "sparse_types": [STRING],
        "dense_keys": [b"y", b"d"],
        "Tdense": [INT64, INT64],
        "dense_shapes": [(1,), (1,)],
        "ragged_keys": [b"x"],
        "ragged_value_types": [FLOAT],
        "ragged_split_types": [INT64],
        "output_types": TYPES,
        "output_shapes": SHAPES,
    }
    defaults = [np.zeros(0, np.int64), np.array([7])]
    return b.op(op, batches, np.int64(2), defaults, attrs=attrs)[0]


def iterated(records: list[bytes], op: str = "ParseExampleDatasetV2") -> GraphDef:
    b = GraphBuilder()
    form: dict[str, Any] = {"output_types": TYPES, "output_shapes": SHAPES}
    handle = b.op("IteratorV2", attrs={**form, "shared_name": b"", "container": b""})[0]
    b.op("MakeIterator", parsed(b, records, op), handle, name="init")
    element = b.op("IteratorGetNext", handle, name="next", attrs=form)
    b.op("DeserializeSparse", element[1], name="sparse", attrs={"dtype": STRING})
    ranks = {"input_ragged_rank": 1, "output_ragged_rank": 1, "Tvalues": FLOAT, "Tsplits": INT64}
    b.op("RaggedTensorFromVariant", element[2], name="ragged", attrs=ranks)
    return b.graph_def()


@pytest.mark.parametrize("op", ["ParseExampleDataset", "ParseExampleDatasetV2"])
async def test_features_come_in_the_order_of_their_names(op: str) -> None:
    """Whatever their sort; a missing one has its default."""
    async with open_session(iterated(RECORDS, op), "cpu:1") as session:
        await session.run([], targets=["init"])
        fetches = ["next:0", "sparse:0", "sparse:1", "sparse:2", "ragged:0", "ragged:1", "next:3"]
        found = [np.asarray(value).tolist() for value in await session.run(fetches)]
    assert found == [[[7], [7]], [[0, 0]], [b"a"], [2, 1], [0, 2, 3], [1.5, 2.5, 3.5], [[4], [5]]]


async def test_a_feature_without_a_value_or_default_is_missed() -> None:
    """By the pull that comes to its record."""
    async with open_session(iterated([*RECORDS, example(x=floats())]), "cpu:1") as session:
        await session.run([], targets=["init"])
        await session.run("next:0")
        with pytest.raises(InvalidArgumentError, match=r"Feature: y \(data type: int64\) is required"):
            await session.run("next:0")
