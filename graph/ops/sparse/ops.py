"""The ops of sparse and ragged tensors.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import Rows

OPS: Rows = {
    "DenseToDenseSetOperation": {"is_flat": True},
    "DenseToSparseSetOperation": {"is_flat": True},
    "EditDistance": {"is_flat": True, "is_flat_in_functions": True},
    "RaggedRange": {"is_flat": True},
    "RaggedTensorToTensor": {},
    "SetSize": {"is_flat": True},
    "SparseAdd": {},
    "SparseAddGrad": {"is_flat": True},
    "SparseConcat": {"is_flat": True},
    "SparseDenseCwiseDiv": {},
    "SparseDenseCwiseMul": {},
    "SparseFillEmptyRows": {},
    "SparseFillEmptyRowsGrad": {},
    "SparseMatrixNNZ": {"is_flat": True},
    "SparseMatrixZeros": {"is_flat": True},
    "SparseReduceSum": {},
    "SparseReorder": {},
    "SparseReshape": {},
    "SparseSegmentMean": {},
    "SparseSegmentMeanGrad": {},
    "SparseSegmentMeanWithNumSegments": {},
    "SparseSegmentSqrtN": {},
    "SparseSegmentSqrtNGrad": {},
    "SparseSegmentSqrtNWithNumSegments": {},
    "SparseSegmentSum": {},
    "SparseSegmentSumGrad": {},
    "SparseSegmentSumWithNumSegments": {},
    "SparseSlice": {},
    "SparseSliceGrad": {},
    "SparseSoftmax": {},
    "SparseSplit": {},
    "SparseTensorDenseMatMul": {"takes_long": True},
    "SparseToDense": {},
    "SparseToSparseSetOperation": {"is_flat": True},
}
