"""Which outputs are refused before a step runs follows from the records of ops, and agrees with what kernels make."""

from __future__ import annotations

from typing import Any

import pytest

from partita.devices.wire import refused_kind
from partita.graph.attrs import encode as attr
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import properties_of

FLOAT, INT64 = DataType.FLOAT, DataType.INT64
_ELEMENTS: dict[str, Any] = {"output_types": [INT64], "output_shapes": [()]}
_TABLE: dict[str, Any] = {"key_dtype": INT64, "value_dtype": FLOAT}

REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "TensorArrayV3": ({"dtype": FLOAT}, 0, "a tensor array or a stack"),
    "TensorArrayV2": ({"dtype": FLOAT}, 0, "a tensor array or a stack"),
    "TensorArray": ({"dtype": FLOAT}, 0, "a tensor array or a stack"),
    "TensorArrayGradV3": ({"source": b"s"}, 0, "a tensor array or a stack"),
    "StackV2": ({"elem_type": FLOAT}, 0, "a tensor array or a stack"),
    "Stack": ({"elem_type": FLOAT}, 0, "a tensor array or a stack"),
    "RangeDataset": (_ELEMENTS, 0, "a dataset"),
    "AnonymousIteratorV2": (_ELEMENTS, 0, "an iterator, a cache or a generator without a name"),
    "AnonymousIteratorV3": (_ELEMENTS, 0, "an iterator, a cache or a generator without a name"),
    "AnonymousMemoryCache": ({}, 1, "an iterator, a cache or a generator without a name"),
    "AnonymousHashTable": (_TABLE, 0, "a table without a name"),
    "MutexLock": ({}, 0, "the lock of a mutex"),
    "CollectiveInitializeCommunicator": ({}, 0, "an object without a name"),
}
ALLOWED: dict[str, tuple[dict[str, Any], int]] = {
    "TensorArrayV3": ({"dtype": FLOAT}, 1),
    "TensorArrayReadV3": ({"dtype": DataType.STRING}, 0),
    "TensorArrayReadV2": ({"dtype": DataType.STRING}, 0),
    "StackPopV2": ({"elem_type": DataType.STRING}, 0),
    "IteratorV2": ({**_ELEMENTS, "shared_name": b"i", "container": b""}, 0),
    "IteratorGetNextAsOptional": (_ELEMENTS, 0),
    "IteratorGetNext": ({"output_types": [DataType.VARIANT], "output_shapes": [()]}, 0),
    "IteratorFromStringHandle": ({}, 0),
    "EmptyTensorList": ({"element_dtype": FLOAT, "shape_type": INT64}, 0),
    "OptionalNone": ({}, 0),
    "EmptyTensorMap": ({}, 0),
    "RaggedTensorToVariant": ({"RAGGED_RANK": 1, "Tvalues": FLOAT, "batched_input": True}, 0),
    "VarHandleOp": ({"dtype": FLOAT, "shape": ()}, 0),
    "VariableV2": ({"dtype": FLOAT, "shape": ()}, 0),
    "FIFOQueueV2": ({"component_types": [FLOAT]}, 0),
    "FIFOQueue": ({"component_types": [FLOAT]}, 0),
    "HashTableV2": (_TABLE, 0),
    "MutexV2": ({}, 0),
    "GetSessionHandleV2": ({"T": FLOAT}, 0),
    "Identity": ({"T": DataType.VARIANT}, 0),
    "Const": ({"dtype": FLOAT, "value": attr(1.0, "tensor")}, 0),
    "_Arg": ({"T": DataType.RESOURCE, "index": 0}, 0),
    "Split": ({"num_split": 3, "T": FLOAT}, 2),
}


@pytest.mark.parametrize("op", REFUSED)
def test_objects_of_a_process_are_refused(op: str) -> None:
    """What the tensors of an output carry themselves does not leave its process."""
    attrs, output, kind = REFUSED[op]
    assert refused_kind(properties_of(op, attrs), output) == kind


@pytest.mark.parametrize("op", ALLOWED)
def test_values_and_handles_travel(op: str) -> None:
    """Numbers, handles of what has a name, values in variants, and whatever another node gives."""
    attrs, output = ALLOWED[op]
    assert refused_kind(properties_of(op, attrs), output) is None
