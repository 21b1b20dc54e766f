"""Costs of reading and writing variables. A read through a handle shares the variable's buffer and is free."""

from __future__ import annotations

from ..host_times import PASS_NS
from ..op_cost import CostContext, bytes_moved, flops, free, moves, rows_picked, takes_host_time

free(
    "AssignVariableOp",
    "DestroyResourceOp",
    "IsVariableInitialized",
    "VarHandleOp",
    "VarIsInitializedOp",
    "Variable",
    "VariableShape",
    "VariableV2",
)
moves("Assign", "ResourceGather", "ResourceGatherNd", "ResourceStridedSliceAssign", "StridedSliceAssign")
bytes_moved("ResourceGather", "ResourceGatherNd")(rows_picked)


@bytes_moved("Assign")
def assign_bytes(c: CostContext) -> int:
    """The value is read and the variable is written; the variable's old value is not read."""
    return 2 * c.bytes_in(1)


_SCATTER_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Min", "Max")
_SCATTER_KINDS = ("Update", *_SCATTER_ARITHMETIC)


@flops(*(f"{prefix}Scatter{kind}" for prefix in ("", "Resource") for kind in _SCATTER_KINDS))
def scatter(c: CostContext) -> int:
    """One operation per element of the updates (input 2), none where they replace."""
    return 0 if c.op.endswith("Update") else c.elements_in(2)


@bytes_moved(*(f"{prefix}Scatter{kind}" for prefix in ("", "Resource") for kind in _SCATTER_KINDS))
def scatter_bytes(c: CostContext) -> int:
    """Updates are read, the rows they hit are read and written, the indices are read."""
    return 3 * c.bytes_in(2) + c.bytes_in(1)


@flops("AssignAddVariableOp", "AssignSubVariableOp", "AssignAdd", "AssignSub")
def assign_add(c: CostContext) -> int:
    """One addition per element of the value (input 1)."""
    return c.elements_in(1)


@bytes_moved("AssignAddVariableOp", "AssignSubVariableOp", "AssignAdd", "AssignSub")
def assign_add_bytes(c: CostContext) -> int:
    """The value and the variable are read, the variable is written."""
    return 3 * c.bytes_in(1)


@bytes_moved("ResourceStridedSliceAssign", "StridedSliceAssign")
def slice_bytes(c: CostContext) -> int:
    """The value (input 4) is read, and written to the slice; the rest of the variable is left alone."""
    return 2 * c.bytes_in(4)


takes_host_time(
    PASS_NS,
    *("CountUpTo", "DeleteSessionTensor", "DestroyTemporaryVariable", "DisableCopyOnRead", "GetSessionHandle"),
    *("GetSessionHandleV2", "GetSessionTensor", "ResourceCountUpTo", "TemporaryVariable"),
)
_SCATTER_ND = ("Add", "Max", "Min", "Sub", "Update")
flops(*(f"{prefix}ScatterNd{kind}" for prefix in ("", "Resource") for kind in _SCATTER_ND))(scatter)
bytes_moved(*(f"{prefix}ScatterNd{kind}" for prefix in ("", "Resource") for kind in _SCATTER_ND))(scatter_bytes)
