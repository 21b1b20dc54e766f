"""Shape functions of datasets and iterators.

A dataset is a scalar, and so is a handle. Elements have the shapes that the attr `output_shapes` promises.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import (
    ShapeContext,
    ShapeFunction,
    no_outputs,
    scalar,
    shape_fn,
    with_rank,
    with_rank_at_most,
)
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

shape_fn("FlatMapDataset", "InterleaveDataset", "GroupByWindowDataset", "ExperimentalGroupByWindowDataset")(scalar)
shape_fn("ParallelInterleaveDataset", "ExperimentalParallelInterleaveDataset")(scalar)
shape_fn("ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4")(scalar)
shape_fn("LegacyParallelInterleaveDatasetV2", "RewriteDataset")(scalar)
shape_fn("DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset")(scalar)
shape_fn("RebatchDatasetV2", "GeneratorDataset", "ListDataset")(scalar)
shape_fn("ParseExampleDataset", "ParseExampleDatasetV2", "ExperimentalParseExampleDataset")(scalar)
shape_fn("SqlDataset", "ExperimentalSqlDataset")(_scalars_from(0))
shape_fn("GroupByReducerDataset", "ExperimentalGroupByReducerDataset")(scalar)
shape_fn("MultiDeviceIterator", "AnonymousMultiDeviceIteratorV3", "MultiDeviceIteratorInit")(scalar)
shape_fn("MultiDeviceIteratorToStringHandle", "MultiDeviceIteratorFromStringHandle")(scalar)
shape_fn("DeleteMultiDeviceIterator")(no_outputs)
shape_fn("SaveDataset", "DatasetToTFRecord", "ExperimentalDatasetToTFRecord")(no_outputs)
shape_fn("UniqueDataset", "ExperimentalUniqueDataset")(scalar)
shape_fn("IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset")(scalar)
shape_fn("NonSerializableDataset", "ExperimentalNonSerializableDataset")(scalar)
shape_fn("MaxIntraOpParallelismDataset", "ExperimentalMaxIntraOpParallelismDataset")(scalar)
shape_fn("PrivateThreadPoolDataset", "ExperimentalPrivateThreadPoolDataset")(scalar)
shape_fn("ThreadPoolHandle", "ExperimentalThreadPoolHandle")(scalar)
shape_fn("ThreadPoolDataset", "ExperimentalThreadPoolDataset")(scalar)
shape_fn("LatencyStatsDataset", "ExperimentalLatencyStatsDataset")(_scalars_from(1))
shape_fn("BytesProducedStatsDataset", "ExperimentalBytesProducedStatsDataset")(_scalars_from(1))
shape_fn("DatasetCardinality", "ExperimentalDatasetCardinality", "GetOptions")(scalar)
shape_fn("WrapDatasetVariant", "UnwrapDatasetVariant")(scalar)
shape_fn("RandomDataset", "RandomDatasetV2", "ExperimentalRandomDataset")(_scalars_from(0))
shape_fn("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")(_scalars_from(1))
shape_fn("ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2")(_scalars_from(1))
shape_fn("CacheDataset", "CacheDatasetV2")(_scalars_from(1))
shape_fn("DummySeedGenerator", "DummyMemoryCache")(scalar)
shape_fn("DeleteSeedGenerator", "DeleteRandomSeedGenerator", "DeleteMemoryCache")(no_outputs)

shape_fn("Iterator", "IteratorV2", "OneShotIterator", "AnonymousIterator", "AnonymousIteratorV3")(scalar)
shape_fn("IteratorGetNextAsOptional")(scalar)
shape_fn("IteratorToStringHandle", "IteratorFromStringHandle", "IteratorFromStringHandleV2")(scalar)
shape_fn("MakeIterator", "DeleteIterator")(no_outputs)


@shape_fn("SaveDatasetV2", "LoadDataset", "SnapshotDatasetV2")
def saved(c: ShapeContext) -> Sequence[Shape]:
    """A dataset; the path is a scalar."""
    with_rank(c.inputs[0 if c.op == "LoadDataset" else 1], 0)
    return ((),)


@shape_fn("DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset")
def sparse_batch(c: ShapeContext) -> Sequence[Shape]:
    """A dataset; the number of elements is a scalar, the shape of a row a vector."""
    with_rank(c.inputs[1], 0)
    with_rank(c.inputs[2], 1)
    return ((),)


@shape_fn("PaddedBatchDataset", "PaddedBatchDatasetV2")
def padded_batch(c: ShapeContext) -> Sequence[Shape]:
    """A dataset; the number of elements is a scalar, and so is whether to drop the rest."""
    with_rank(c.inputs[1], 0)
    if len(c.inputs) % 2:
        with_rank(c.inputs[-1], 0)
    return ((),)


@shape_fn(
    "AnonymousIteratorV2",
    "AnonymousMultiDeviceIterator",
    "AnonymousMemoryCache",
    "AnonymousSeedGenerator",
    "AnonymousRandomSeedGenerator",
)
def anonymous(_: ShapeContext) -> Sequence[Shape]:
    """The handle, and what deletes it."""
    return (), ()


@shape_fn(
    "TextLineDataset",
    "TFRecordDataset",
    "TFRecordDatasetV2",
    "FixedLengthRecordDataset",
    "FixedLengthRecordDatasetV2",
)
def files(c: ShapeContext) -> Sequence[Shape]:
    """A dataset; the names of the files, and the places in them, are scalars or vectors, all else is scalar."""
    with_rank_at_most(c.inputs[0], 1)
    for shape in c.inputs[1:3]:
        with_rank(shape, 0)
    for shape in c.inputs[3:]:
        with_rank_at_most(shape, 1 if c.op.startswith("TFRecord") else 0)
    return ((),)


@shape_fn("CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset")
def csv_files(c: ShapeContext) -> Sequence[Shape]:
    """A dataset; names are a scalar or a vector, chosen columns vectors, and of defaults there is one at most."""
    columns = {7, len(c.inputs) - 1} if c.op == "CSVDatasetV2" else {7}
    for i, shape in enumerate(c.inputs):
        if i in columns:
            with_rank(shape, 1)
        elif 0 < i < 7:
            with_rank(shape, 0)
        else:
            with_rank_at_most(shape, 1)
        if i > 7 and i not in columns and shape and (shape[0] or 0) > 1:
            raise InvalidArgumentError("Shape of a default must be a length-0 or length-1 vector, or a scalar.")
    return ((),)


@shape_fn(
    "MultiDeviceIteratorGetNextFromShard",
    "IteratorGetNext",
    "IteratorGetNextSync",
    "ReduceDataset",
    "DatasetToSingleElement",
)
def element(c: ShapeContext) -> Sequence[Shape]:
    """The shapes that the attr promises."""
    with_rank(c.inputs[0], 0)
    shapes: Sequence[Shape] = c.attrs["output_shapes"]
    return shapes
