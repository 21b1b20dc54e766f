"""Shape functions of the ops that parse SequenceExamples.

The number of steps, and that of the values of a sparse or ragged feature, are known in the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank, with_rank_at_most
from ...dtypes import Shape
from .examples_shapes import sparse_shapes


def _with_batch(shapes: Sequence[Shape], batch: Shape, inner: tuple[None, ...] = ()) -> list[Shape]:
    return [None if batch is None or shape is None else (*batch, *inner, *shape) for shape in shapes]


def _sequence_shapes(c: ShapeContext, batch: Shape) -> tuple[list[Shape], list[Shape]]:
    """Those of the context and those of the feature lists, without ragged ones."""
    rank = None if batch is None else len(batch)
    context = sparse_shapes(c.attrs["Ncontext_sparse"], None if rank is None else rank + 1)
    lists = sparse_shapes(c.attrs["Nfeature_list_sparse"], None if rank is None else rank + 2)
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
