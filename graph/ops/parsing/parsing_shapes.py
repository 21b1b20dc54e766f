"""Shape functions of the ops that parse Examples and SequenceExamples.

A sparse feature of a batch is a matrix, that of a single record a vector; the number of values, and of the steps of a
sequence, is known in the run.
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


def _sparse_shapes(count: int, rank: int | None) -> list[Shape]:
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
    return (*_sparse_shapes(c.attrs["Nsparse"], 2), *_dense_shapes(c, batch))


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
    sparse = _sparse_shapes(c.attrs["num_sparse"], rank)
    values = [(None,)] * len(c.attrs["ragged_value_types"])
    return (*sparse, *_dense_shapes(c, batch), *values, *[splits] * len(c.attrs["ragged_split_types"]))


@shape_fn("ParseSingleExample")
def parse_single_example(c: ShapeContext) -> Sequence[Shape]:
    """Of a single record."""
    with_rank(c.inputs[0], 0)
    _check_dense_shapes(c)
    return (*_sparse_shapes(c.attrs["num_sparse"], 1), *_dense_shapes(c, ()))


def _with_batch(shapes: Sequence[Shape], batch: Shape, inner: tuple[None, ...] = ()) -> list[Shape]:
    return [None if batch is None or shape is None else (*batch, *inner, *shape) for shape in shapes]


def _sequence_shapes(c: ShapeContext, batch: Shape) -> tuple[list[Shape], list[Shape]]:
    """Those of the context and those of the feature lists, without ragged ones."""
    rank = None if batch is None else len(batch)
    context = _sparse_shapes(c.attrs["Ncontext_sparse"], None if rank is None else rank + 1)
    lists = _sparse_shapes(c.attrs["Nfeature_list_sparse"], None if rank is None else rank + 2)
    context += _with_batch(c.attrs["context_dense_shapes"], batch)
    lists += _with_batch(c.attrs["feature_list_dense_shapes"], batch, (None,))
    return context, lists


@shape_fn("ParseSequenceExample")
def parse_sequence_example(c: ShapeContext) -> Sequence[Shape]:
    """Of a batch; the kernel takes a single record as well, which TensorFlow's shape function refuses."""
    batch = with_rank(c.inputs[0], 1)
    context, lists = _sequence_shapes(c, batch)
    return (*context, *lists, *[batch] * c.attrs["Nfeature_list_dense"])


@shape_fn("ParseSequenceExampleV2")
def parse_sequence_example_v2(c: ShapeContext) -> Sequence[Shape]:
    """Of a batch or a single record."""
    batch = with_rank_at_most(c.inputs[0], 1)
    context, lists = _sequence_shapes(c, batch)
    splits: Shape = (batch[0] + 1,) if batch and batch[0] is not None else (None,)
    ragged = len(c.attrs["context_ragged_value_types"]), len(c.attrs["feature_list_ragged_value_types"])
    unknown: list[Shape] = [(None,)]
    return (
        *(*context, *unknown * ragged[0], *[splits] * ragged[0]),
        *(*lists, *[batch] * c.attrs["Nfeature_list_dense"]),
        *(*unknown * ragged[1], *[splits] * ragged[1], *unknown * ragged[1]),
    )


@shape_fn("ParseSingleSequenceExample")
def parse_single_sequence_example(c: ShapeContext) -> Sequence[Shape]:
    """Of a single record; all keys are scalars."""
    with_rank(c.inputs[0], 0)
    context, lists = _sequence_shapes(c, ())
    return (*context, *lists)
