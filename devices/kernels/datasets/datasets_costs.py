"""Costs of datasets and iterators: to describe a dataset takes a time of the host; what is pulled is written once.

What the functions of a dataset compute is not counted: a pull costs the tensors that it yields.
"""

from __future__ import annotations

from ....graph.dtypes import DataType
from ....graph.ops.datasets.ops import OPS
from ....graph.ops.registry import lookup_op
from ..host_times import MAKE_NS, PASS_NS
from ..op_cost import bytes_moved, moves, output_bytes, takes_host_time

_WRAPPERS = ("UnwrapDatasetVariant", "WrapDatasetVariant")


def _describes(op: str) -> bool:
    """Whether an op only yields a dataset."""
    outputs = lookup_op(op).output_args
    return len(outputs) == 1 and outputs[0].type == DataType.VARIANT and op not in _PULLS


_PULLS = (
    *("DatasetToSingleElement", "IteratorGetNext", "IteratorGetNextAsOptional", "IteratorGetNextSync"),
    *("MultiDeviceIteratorGetNextFromShard", "ReduceDataset"),
)
moves(*_PULLS)
bytes_moved(*_PULLS)(output_bytes)
takes_host_time(
    MAKE_NS,
    *(op for op in OPS if _describes(op) and op not in _WRAPPERS),
    *("AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3", "AnonymousMemoryCache"),
    *("AnonymousMultiDeviceIterator", "AnonymousMultiDeviceIteratorV3", "AnonymousRandomSeedGenerator"),
    *("AnonymousSeedGenerator", "DummyMemoryCache", "DummySeedGenerator", "ExperimentalThreadPoolHandle", "Iterator"),
    *("IteratorV2", "MakeIterator", "MultiDeviceIterator", "MultiDeviceIteratorInit", "OneShotIterator"),
    "ThreadPoolHandle",
)
takes_host_time(
    PASS_NS,
    *_WRAPPERS,
    *("DatasetCardinality", "ExperimentalDatasetCardinality", "GetOptions"),
    *("DeleteIterator", "DeleteMemoryCache", "DeleteMultiDeviceIterator", "DeleteRandomSeedGenerator"),
    *("DeleteSeedGenerator", "IteratorFromStringHandle", "IteratorFromStringHandleV2", "IteratorToStringHandle"),
    *("MultiDeviceIteratorFromStringHandle", "MultiDeviceIteratorToStringHandle"),
)
