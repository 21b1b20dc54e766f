"""The ops of datasets and iterators.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import Facts, Rows, State

_NAMES: Facts = {"names_functions": True}
_PULLS: Facts = {"state": State.ITERATOR, "waits": True, "calls_carried": True}

OPS: Rows = {
    "AnonymousIterator": {"state": State.ITERATOR},
    "AnonymousIteratorV2": {"state": State.ITERATOR},
    "AnonymousIteratorV3": {"state": State.ITERATOR},
    "AssertCardinalityDataset": {},
    "BatchDataset": {},
    "BatchDatasetV2": {},
    "ConcatenateDataset": {},
    "DeleteIterator": {"state": State.ITERATOR},
    "ExperimentalMapAndBatchDataset": _NAMES,
    "ExperimentalMapDataset": _NAMES,
    "ExperimentalScanDataset": _NAMES,
    "ExperimentalTakeWhileDataset": _NAMES,
    "ExperimentalUnbatchDataset": {},
    "FilterDataset": _NAMES,
    "FinalizeDataset": {},
    "Iterator": {"state": State.ITERATOR},
    "IteratorFromStringHandle": {"state": State.ITERATOR},
    "IteratorFromStringHandleV2": {"state": State.ITERATOR},
    "IteratorGetNext": _PULLS,
    "IteratorGetNextAsOptional": _PULLS,
    "IteratorGetNextSync": _PULLS,
    "IteratorToStringHandle": {"state": State.ITERATOR},
    "IteratorV2": {"state": State.ITERATOR},
    "MakeIterator": {"state": State.ITERATOR},
    "MapAndBatchDataset": _NAMES,
    "MapDataset": _NAMES,
    "ModelDataset": {},
    "OneShotIterator": {**_PULLS, **_NAMES},
    "OptimizeDataset": {},
    "OptimizeDatasetV2": {},
    "OptionsDataset": {},
    "PaddedBatchDataset": {},
    "PaddedBatchDatasetV2": {},
    "ParallelBatchDataset": {},
    "ParallelFilterDataset": _NAMES,
    "ParallelMapDataset": _NAMES,
    "ParallelMapDatasetV2": _NAMES,
    "PrefetchDataset": {},
    "RangeDataset": {},
    "RepeatDataset": {},
    "ScanDataset": _NAMES,
    "ShardDataset": {},
    "SkipDataset": {},
    "SparseTensorSliceDataset": {},
    "TakeDataset": {},
    "TakeWhileDataset": _NAMES,
    "TensorDataset": {},
    "TensorSliceDataset": {},
    "UnbatchDataset": {},
    "WindowDataset": {},
    "ZipDataset": {},
}
