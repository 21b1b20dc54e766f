"""Costs of ops on sparse and ragged tensors: by the values that are there, not by the dense shape.

A sparse tensor comes as indices, values and shape, so its values are the second of three inputs.
"""

from __future__ import annotations

from ..host_times import PASS_NS
from ..op_cost import CostContext, elements_read, flops, moves, takes_host_time

takes_host_time(PASS_NS, "AddSparseToTensorsMap", "SparseMatrixNNZ")
moves(
    *("AddManySparseToTensorsMap", "RaggedFillEmptyRows", "RaggedFillEmptyRowsGrad", "RaggedGather"),
    *("RaggedTensorFromVariant", "RaggedTensorToSparse", "RaggedTensorToTensor", "RaggedTensorToVariant"),
    *("RaggedTensorToVariantGradient", "SparseConcat", "SparseFillEmptyRows", "SparseFillEmptyRowsGrad"),
    *(
        "SparseAddGrad",
        "SparseSlice",
        "SparseSliceGrad",
        "SparseSplit",
        "SparseToDense",
        "TakeManySparseFromTensorsMap",
    ),
)
flops("RaggedBincount", "SparseBincount", "SparseSegmentSum")(elements_read)


@flops(
    *("SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseDenseCwiseMul"),
    *("SparseReduceMax", "SparseReduceMaxSparse", "SparseReduceSum", "SparseReduceSumSparse"),
    "SparseTensorDenseAdd",
)
def values(c: CostContext) -> int:
    """An operation per value."""
    return c.elements_in(1)


@flops("SparseAdd", "SparseSparseMaximum", "SparseSparseMinimum")
def values_of_both(c: CostContext) -> int:
    """The values of both are merged: a comparison of indices and an operation each."""
    return 2 * (c.elements_in(1) + c.elements_in(4))


@flops("SparseSoftmax")
def softmax(c: CostContext) -> int:
    """Per value: maximum, subtraction, exponential, sum, division."""
    return 5 * c.elements_in(1)


@flops("SparseReorder")
def reorder(c: CostContext) -> int:
    """n log2(n) comparisons of indices."""
    count = c.elements_in(1)
    return count * max(count - 1, 0).bit_length()


@flops("SparseReshape")
def reshape(c: CostContext) -> int:
    """A product and a sum per old coordinate, a quotient and a remainder per new one."""
    return 2 * (c.elements_in(0) + c.elements_out(0))


@flops("SparseTensorDenseMatMul")
def product_with_dense(c: CostContext) -> int:
    """A product and a sum per value and column of the result."""
    return 2 * c.elements_in(1) * c.outputs[0][-1]


@flops("RaggedRange")
def ragged_range(c: CostContext) -> int:
    """A product and a sum per element."""
    return 2 * c.elements_out(1)


@flops(
    *("SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtN"),
    *("SparseSegmentSqrtNWithNumSegments", "SparseSegmentSumWithNumSegments"),
    *("SparseSegmentMeanGrad", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGrad", "SparseSegmentSqrtNGradV2"),
    *("SparseSegmentSumGrad", "SparseSegmentSumGradV2"),
)
def segments_of_rows(c: CostContext) -> int:
    """An operation per element of each row that an index (input 1) picks, and a factor per element of the result."""
    return c.elements_in(1) * (c.elements_in(0) // max(c.inputs[0][0], 1)) + c.elements_out()
