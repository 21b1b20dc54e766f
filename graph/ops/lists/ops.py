"""The ops of tensor lists, tensor arrays and stacks.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import ReadsHandle, Rows, State

OPS: Rows = {
    "EmptyTensorList": {"is_flat": True},
    "OptionalFromValue": {},
    "OptionalGetValue": {},
    "OptionalHasValue": {},
    "OptionalNone": {},
    "StackCloseV2": {"state": State.LIST},
    "StackPopV2": {"state": State.LIST},
    "StackPushV2": {"state": State.LIST},
    "StackV2": {"state": State.LIST, "is_flat": True},
    "TensorArrayCloseV3": {"state": State.LIST, "is_flat": True},
    "TensorArrayConcatV3": {"state": State.LIST},
    "TensorArrayGatherV3": {"state": State.LIST, "reads_handle": ReadsHandle.ELEMENTS},
    "TensorArrayGradV3": {"state": State.LIST, "is_flat": True},
    "TensorArrayGradWithShape": {"state": State.LIST, "is_flat": True},
    "TensorArrayReadV3": {"state": State.LIST, "reads_handle": ReadsHandle.VALUE},
    "TensorArrayScatterV3": {"state": State.LIST},
    "TensorArraySizeV3": {"state": State.LIST, "is_flat": True},
    "TensorArraySplitV3": {"state": State.LIST},
    "TensorArrayV3": {"state": State.LIST, "is_flat": True, "handle_shape_attr": "element_shape"},
    "TensorArrayWriteV3": {"state": State.LIST},
    "TensorListConcat": {},
    "TensorListConcatLists": {},
    "TensorListConcatV2": {},
    "TensorListElementShape": {"is_flat": True},
    "TensorListFromTensor": {},
    "TensorListGather": {},
    "TensorListGetItem": {},
    "TensorListLength": {"is_flat": True},
    "TensorListPopBack": {},
    "TensorListPushBack": {},
    "TensorListPushBackBatch": {},
    "TensorListReserve": {"is_flat": True},
    "TensorListResize": {},
    "TensorListScatter": {},
    "TensorListScatterIntoExistingList": {},
    "TensorListScatterV2": {},
    "TensorListSetItem": {},
    "TensorListSplit": {},
    "TensorListStack": {},
}
