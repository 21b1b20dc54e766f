"""The ops of tensor lists, tensor arrays and stacks.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import ReadsHandle, Rows, State, WritesList

OPS: Rows = {
    "EmptyTensorList": {"is_flat": True, "element_shape_input": 0},
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
    "TensorListConcat": {"reads_handle": ReadsHandle.JOINED},
    "TensorListConcatLists": {},
    "TensorListConcatV2": {"reads_handle": ReadsHandle.JOINED},
    "TensorListElementShape": {"is_flat": True, "reads_handle": ReadsHandle.SHAPE},
    "TensorListFromTensor": {"element_shape_input": 1, "writes_list": WritesList.ROWS, "written_input": 0},
    "TensorListGather": {"reads_handle": ReadsHandle.ELEMENTS},
    "TensorListGetItem": {"reads_handle": ReadsHandle.VALUE},
    "TensorListLength": {"is_flat": True},
    "TensorListPopBack": {"reads_handle": ReadsHandle.LAST},
    "TensorListPushBack": {"writes_list": WritesList.ELEMENT, "written_input": 1},
    "TensorListPushBackBatch": {"writes_list": WritesList.ROWS, "written_input": 1},
    "TensorListReserve": {"is_flat": True, "element_shape_input": 0},
    "TensorListResize": {},
    "TensorListScatter": {"element_shape_input": 2, "writes_list": WritesList.ROWS, "written_input": 0},
    "TensorListScatterIntoExistingList": {"writes_list": WritesList.ROWS, "written_input": 1},
    "TensorListScatterV2": {"element_shape_input": 2, "writes_list": WritesList.ROWS, "written_input": 0},
    "TensorListSetItem": {"writes_list": WritesList.ELEMENT, "written_input": 2},
    "TensorListSplit": {"element_shape_input": 1, "writes_list": WritesList.PIECES, "written_input": 0},
    "TensorListStack": {"reads_handle": ReadsHandle.STACKED},
}
