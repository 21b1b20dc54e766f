"""Costs of ops that rearrange, cut, join, pick or search elements: most only move bytes; ops on shapes are free."""

from __future__ import annotations

from ..host_times import PASS_NS
from ..op_cost import (
    CostContext,
    bytes_moved,
    copied_outputs,
    elements_read,
    flops,
    free,
    input_bytes,
    moves,
    output_bytes,
    rows_picked,
    takes_host_time,
)

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


takes_host_time(PASS_NS, "Empty")
moves(
    *(
        "BatchMatrixBandPart",
        "BatchMatrixDiag",
        "BatchMatrixSetDiag",
        "ConjugateTranspose",
        "DataFormatVecPermute",
        "Diag",
    ),
    *("BatchMatrixDiagPart", "DiagPart", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"),
    *("ExtractImagePatches", "ExtractVolumePatches", "InplaceUpdate", "MatrixBandPart", "MatrixDiag", "MatrixDiagV2"),
    *(
        "MatrixDiagV3",
        "MatrixSetDiag",
        "MatrixSetDiagV2",
        "MatrixSetDiagV3",
        "ParallelDynamicStitch",
        "ReverseSequence",
    ),
    *("Roll", "TensorScatterUpdate", "TensorStridedSliceUpdate"),
)
bytes_moved("BatchMatrixDiagPart", "DiagPart", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")(copied_outputs)
flops("InTopK", "InTopKV2", "MirrorPadGrad", "TileGrad", "Where")(elements_read)


@bytes_moved("Where")
def where_bytes(c: CostContext) -> int:
    """The input is read twice: to count what is true, then to write where it is."""
    return 2 * input_bytes(c) + output_bytes(c)


@flops("DataFormatDimMap", "LinSpace", "Range", "UnravelIndex")
def positions(c: CostContext) -> int:
    """A multiplication and an addition for each element, or a look-up."""
    return 2 * c.elements_out()


bytes_moved("LinSpace", "Range")(output_bytes)


@flops("InplaceAdd", "InplaceSub")
def inplace(c: CostContext) -> int:
    """An operation per element of the rows that are added."""
    return c.elements_in(2)


_SCATTERED = ("ScatterNdNonAliasingAdd", "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub")


@flops(*_SCATTERED)
def scattered(c: CostContext) -> int:
    """An operation per element of the updates (input 2)."""
    return c.elements_in(2)


@bytes_moved(*_SCATTERED, "TensorScatterUpdate")
def scattered_bytes(c: CostContext) -> int:
    """The tensor is copied, then the rows that the updates hit are read and written; indices and updates are read."""
    return input_bytes(c) + c.bytes_out() + 2 * c.bytes_in(2)


@flops("ScatterNd")
def scatter_nd(c: CostContext) -> int:
    """An addition per element of the updates (input 1)."""
    return c.elements_in(1)


@bytes_moved("ScatterNd")
def scatter_nd_bytes(c: CostContext) -> int:
    """Zeros are written, then the rows that the updates hit are read and written."""
    return input_bytes(c) + c.bytes_out() + 2 * c.bytes_in(1)


@flops("ApproxTopK", "TopK", "TopKV2")
def top_k(c: CostContext) -> int:
    """Each element goes through a heap of k."""
    k = c.outputs[0][-1] if c.outputs[0] else 1
    return c.elements_in() * max(k.bit_length(), 1)


@flops("NthElement")
def nth_element(c: CostContext) -> int:
    """Quickselect looks at three elements for each one, on average (Knuth)."""
    return 3 * c.elements_in()


@flops("LowerBound", "UpperBound")
def bounds(c: CostContext) -> int:
    """A binary search for each value."""
    return c.elements_in(1) * (c.inputs[0][-1] if c.inputs[0] else 1).bit_length()


_HASH = 10
"""operations that hash a word and compare it with its slot"""


@flops("UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(c: CostContext) -> int:
    """Each element is looked up once."""
    return _HASH * c.elements_in()


@flops("ListDiff")
def list_diff(c: CostContext) -> int:
    """Each element of both lists is looked up once."""
    return _HASH * (c.elements_in(0) + c.elements_in(1))
