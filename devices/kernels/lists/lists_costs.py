"""Costs of lists, arrays and stacks: elements go in and out by reference; what joins or splits them copies.

Which ops copy is what TensorFlow does: a stack, a gather and a concatenation make one tensor of many, a split, a
scatter and `TensorListFromTensor` give each element memory of its own.
"""

from __future__ import annotations

from ..host_times import MAKE_NS, PASS_NS
from ..op_cost import bytes_moved, copied_inputs, copied_outputs, moves, takes_host_time

takes_host_time(
    MAKE_NS,
    *("EmptyTensorList", "EmptyTensorMap", "TensorListReserve", "Stack", "StackV2"),
    *("TensorArray", "TensorArrayV2", "TensorArrayV3"),
    *("TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape"),
)
takes_host_time(
    PASS_NS,
    *("OptionalFromValue", "OptionalGetValue", "OptionalHasValue", "OptionalNone"),
    *("StackClose", "StackCloseV2", "StackPop", "StackPopV2", "StackPush", "StackPushV2"),
    *("TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3"),
    *("TensorArrayRead", "TensorArrayReadV2", "TensorArrayReadV3"),
    *("TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3"),
    *("TensorArrayWrite", "TensorArrayWriteV2", "TensorArrayWriteV3"),
    *("TensorListConcatLists", "TensorListElementShape", "TensorListGetItem", "TensorListLength"),
    *("TensorListPopBack", "TensorListPushBack", "TensorListResize", "TensorListSetItem"),
    *("TensorMapErase", "TensorMapHasKey", "TensorMapInsert", "TensorMapLookup", "TensorMapSize"),
)

_JOINS = (
    *("TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3"),
    *("TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3", "TensorArrayPack"),
    *("TensorListConcat", "TensorListConcatV2", "TensorListGather", "TensorListStack", "TensorMapStackKeys"),
)
_SPLITS = (
    *("TensorArrayScatter", "TensorArrayScatterV2", "TensorArrayScatterV3", "TensorArrayUnpack"),
    *("TensorArraySplit", "TensorArraySplitV2", "TensorArraySplitV3"),
    *("TensorListFromTensor", "TensorListPushBackBatch", "TensorListSplit"),
    *("TensorListScatter", "TensorListScatterIntoExistingList", "TensorListScatterV2"),
)
moves(*_JOINS, *_SPLITS)
bytes_moved(*_JOINS)(copied_outputs)
bytes_moved(*_SPLITS)(copied_inputs)
