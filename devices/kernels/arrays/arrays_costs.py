"""Costs of ops that rearrange, cut, join or pick elements: they only move bytes; ops on shapes are free."""

from __future__ import annotations

from ..op_cost import CostContext, bytes_moved, free, moves, output_bytes, rows_picked

free(
    "BroadcastArgs",
    "ConcatOffset",
    "InvertPermutation",
    "Rank",
    "Shape",
    "ShapeN",
    "Size",
)
moves(
    *("BatchToSpace", "BatchToSpaceND", "BroadcastTo", "Concat", "ConcatV2", "DepthToSpace", "DynamicPartition"),
    *("DynamicStitch", "Fill", "Gather", "GatherNd", "GatherV2", "MirrorPad", "OneHot", "Pack", "Pad", "PadV2"),
    *("ParallelConcat", "Reverse", "ReverseV2", "Slice", "SpaceToBatch", "SpaceToBatchND", "SpaceToDepth", "Split"),
    *("SplitV", "StridedSlice", "StridedSliceGrad", "Tile", "Transpose", "Unique", "Unpack"),
)
bytes_moved("Fill")(output_bytes)
bytes_moved("Gather", "GatherNd", "GatherV2")(rows_picked)


@bytes_moved("Slice", "StridedSlice")
def slice_bytes(c: CostContext) -> int:
    """Only the elements of the slice are read and written."""
    return 2 * c.bytes_out()
