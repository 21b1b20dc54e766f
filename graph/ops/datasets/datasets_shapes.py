"""Shape functions of datasets and iterators.

A dataset is a scalar, and so is a handle. Elements have the shapes that the attr `output_shapes` promises.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, ShapeFunction, no_outputs, scalar, shape_fn, with_rank
from ...dtypes import Shape


def _scalars_from(first: int) -> ShapeFunction:
    """The shape function of a dataset whose inputs from number `first` on are scalars."""

    def dataset(c: ShapeContext) -> Sequence[Shape]:
        for shape in c.inputs[first:]:
            with_rank(shape, 0)
        return ((),)

    return dataset


shape_fn("TensorDataset", "TensorSliceDataset", "SparseTensorSliceDataset", "ZipDataset", "ConcatenateDataset")(scalar)
shape_fn("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2", "ExperimentalMapDataset")(scalar)
shape_fn("FilterDataset", "ParallelFilterDataset", "TakeWhileDataset", "ExperimentalTakeWhileDataset")(scalar)
shape_fn("ScanDataset", "ExperimentalScanDataset", "UnbatchDataset", "ExperimentalUnbatchDataset")(scalar)
shape_fn("OptionsDataset", "ModelDataset", "FinalizeDataset", "OptimizeDataset", "OptimizeDatasetV2")(scalar)
shape_fn("RangeDataset")(_scalars_from(0))
shape_fn("TakeDataset", "SkipDataset", "RepeatDataset", "ShardDataset", "PrefetchDataset")(_scalars_from(1))
shape_fn("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset", "WindowDataset")(_scalars_from(1))
shape_fn("AssertCardinalityDataset")(_scalars_from(1))
shape_fn("MapAndBatchDataset", "ExperimentalMapAndBatchDataset")(_scalars_from(-3))

shape_fn("Iterator", "IteratorV2", "OneShotIterator", "AnonymousIterator", "AnonymousIteratorV3")(scalar)
shape_fn("IteratorGetNextAsOptional")(scalar)
shape_fn("IteratorToStringHandle", "IteratorFromStringHandle", "IteratorFromStringHandleV2")(scalar)
shape_fn("MakeIterator", "DeleteIterator")(no_outputs)


@shape_fn("PaddedBatchDataset", "PaddedBatchDatasetV2")
def padded_batch(c: ShapeContext) -> Sequence[Shape]:
    """A dataset; the number of elements is a scalar, and so is whether to drop the rest."""
    with_rank(c.inputs[1], 0)
    if len(c.inputs) % 2:
        with_rank(c.inputs[-1], 0)
    return ((),)


@shape_fn("AnonymousIteratorV2")
def anonymous_iterator(_: ShapeContext) -> Sequence[Shape]:
    """The handle, and what deletes it."""
    return (), ()


@shape_fn("IteratorGetNext", "IteratorGetNextSync")
def element(c: ShapeContext) -> Sequence[Shape]:
    """The shapes that the attr promises."""
    with_rank(c.inputs[0], 0)
    shapes: Sequence[Shape] = c.attrs["output_shapes"]
    return shapes
