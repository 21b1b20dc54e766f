"""What is read through handles of variables and tables has the shapes that TensorFlow 2.21 infers at import."""

from __future__ import annotations

from typing import Any

import pytest

from partita.errors import InvalidArgumentError
from partita.graph import GraphBuilder, infer_shapes
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Shape


def variable(b: GraphBuilder, shape: Shape) -> Tensor:
    """The handle of a variable, through an identity."""
    return b.identity(b.op("VarHandleOp", dtype="float32", shape=shape))


@pytest.mark.parametrize(
    ("value", "indices", "rows"),
    [
        ((3, 2), (4, 1), (4, 2)),
        ((3, 2), (4, 2), (4,)),
        ((3, 2), (3, 0), (3, 3, 2)),
        ((3, None, 5), (7, None, 1), (7, None, None, 5)),
        ((3, 2), (4, None), None),
        ((3, 2), None, None),
        (None, (4, 1), None),
    ],
)
def test_slices_of_a_variable_are_those_of_its_value(value: Shape, indices: Shape, rows: Shape) -> None:
    """One for each row of indices, of the axes that the indices leave."""
    b = GraphBuilder()
    b.op("ResourceGatherNd", variable(b, value), b.placeholder("i", "int32", indices), dtype="float32", name="r")
    assert infer_shapes(b.graph())["r"] == (rows,)


def test_indices_of_slices_have_no_more_axes_than_the_variable() -> None:
    """As those of GatherNd."""
    b = GraphBuilder()
    b.op("ResourceGatherNd", variable(b, (3, 2)), b.placeholder("i", "int32", (3,)), dtype="float32", name="r")
    with pytest.raises(InvalidArgumentError, match=r"saw indices shape: \[3\] and params shape: \[3,2\]"):
        infer_shapes(b.graph())


@pytest.mark.parametrize(
    ("value", "indices", "batch", "rows"),
    [
        ((3, 4, 5), (3, 2), 0, (3, 2, 4, 5)),
        ((3, 4, 5), (3, 2), 1, (3, 2, 5)),
        ((3, 4, 5), (7, 2), 1, (3, 2, 5)),
        ((3, 4, 5), (3, 2), 2, (3, 4)),
        ((3, 4, 5), (3, 4, 2), 2, (3, 4, 2)),
        ((3, 4, 5), None, 1, None),
        (None, (3, 2), 1, None),
    ],
)
def test_rows_of_a_variable_may_be_read_in_batches(value: Shape, indices: Shape, batch: int, rows: Shape) -> None:
    """The first axes are those of the variable."""
    b = GraphBuilder()
    i = b.placeholder("i", "int32", indices)
    b.op("ResourceGather", variable(b, value), i, dtype="float32", batch_dims=batch, name="r")
    assert infer_shapes(b.graph())["r"] == (rows,)


@pytest.mark.parametrize(
    ("value", "indices", "rank"),
    [((3,), (3,), 2), ((), (2,), 1), ((3, 4, 5), (3,), 2)],
    ids=["value", "scalar", "indices"],
)
def test_batches_need_axes(value: Shape, indices: Shape, rank: int) -> None:
    """Of the variable and of the indices."""
    b = GraphBuilder()
    i = b.placeholder("i", "int32", indices)
    b.op(
        "ResourceGather",
        variable(b, value),
        i,
        dtype="float32",
        batch_dims=2 if value == (3, 4, 5) else len(value or ()),
    )
    with pytest.raises(InvalidArgumentError, match=f"Shape must be at least rank {rank} but is rank {rank - 1}"):
        infer_shapes(b.graph())


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        ((4,), (4, 7), ""),
        ((4,), (4,), ""),
        (None, None, ""),
        ((4,), (5, 7), "Dimensions must be equal, but are 4 and 5"),
        ((4,), (), "Shape must be at least rank 1 but is rank 0"),
        ((4, 2), (4, 7), "Shape must be rank 1 but is rank 2"),
    ],
)
@pytest.mark.parametrize("op", ["HashTableV2", "MutableHashTableOfTensorsV2"])
def test_a_table_is_imported_from_as_many_values_as_keys(op: str, keys: Shape, values: Shape, message: str) -> None:
    """Keys are a vector, whatever the table; an insertion is not looked at."""
    b = GraphBuilder()
    types: dict[str, Any] = {"key_dtype": "string", "value_dtype": "int64"}
    table = b.op(op, **types)
    contents = b.placeholder("k", "string", keys), b.placeholder("v", "int64", values)
    b.op("LookupTableInsertV2", table, *contents)
    infer_shapes(b.graph())
    b.op("LookupTableImportV2", table, *contents)
    if message:
        with pytest.raises(InvalidArgumentError, match=message):
            infer_shapes(b.graph())
    else:
        infer_shapes(b.graph())
