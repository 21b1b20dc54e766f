"""Shape functions of the ops that parse Examples.

A sparse feature of a batch is a matrix, that of a single record a vector; the number of values is known in the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, shape_fn, unchanged, with_rank, with_rank_at_most
from ...dtypes import Shape

shape_fn("DecodeJSONExample")(unchanged)


def _check_dense_shapes(c: ShapeContext) -> None:
    if len(c.attrs["dense_shapes"]) != len(c.attrs["Tdense"]):
        raise InvalidArgumentError("len(dense_keys) != len(dense_shapes)")
    for d, shape in enumerate(c.attrs["dense_shapes"]):
        if shape is None or None in shape[1:]:
            raise InvalidArgumentError(f"dense_shapes[{d}] has unknown rank or unknown inner dimensions")


def sparse_shapes(count: int, rank: int | None) -> list[Shape]:
    """Indices, values and shapes of `count` sparse tensors of that rank."""
    return [(None, rank)] * count + [(None,)] * count + [(rank,)] * count


def _dense_shapes(c: ShapeContext, batch: Shape) -> list[Shape]:
    shapes: Sequence[tuple[int | None, ...]] = c.attrs["dense_shapes"]
    return [None if batch is None else (*batch, *shape) for shape in shapes]


@shape_fn("ParseExample")
def parse_example(c: ShapeContext) -> Sequence[Shape]:
    """Of a batch."""
    batch = with_rank(c.inputs[0], 1)
    _check_dense_shapes(c)
    return (*sparse_shapes(c.attrs["Nsparse"], 2), *_dense_shapes(c, batch))


@shape_fn("ParseExampleV2")
def parse_example_v2(c: ShapeContext) -> Sequence[Shape]:
    """Of a batch or a single record."""
    batch = with_rank_at_most(c.inputs[0], 1)
    for keys in c.inputs[2:5]:
        with_rank(keys, 1)
    _check_dense_shapes(c)
    rank = None if batch is None else len(batch) + 1
    splits: Shape = (None,)
    if batch:
        splits = (None if batch[0] is None else batch[0] + 1,)
    sparse = sparse_shapes(c.attrs["num_sparse"], rank)
    values = [(None,)] * len(c.attrs["ragged_value_types"])
    return (*sparse, *_dense_shapes(c, batch), *values, *[splits] * len(c.attrs["ragged_split_types"]))


@shape_fn("ParseSingleExample")
def parse_single_example(c: ShapeContext) -> Sequence[Shape]:
    """Of a single record."""
    with_rank(c.inputs[0], 0)
    _check_dense_shapes(c)
    return (*sparse_shapes(c.attrs["num_sparse"], 1), *_dense_shapes(c, ()))
