"""The ops of linear algebra and Fourier transforms.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import Rows

OPS: Rows = {
    "BandedTriangularSolve": {"takes_long": True},
    "BatchMatMul": {"takes_long": True},
    "BatchMatMulV2": {"takes_long": True},
    "BatchMatMulV3": {"takes_long": True},
    "Cholesky": {"takes_long": True},
    "CholeskyGrad": {"takes_long": True},
    "Eig": {"takes_long": True},
    "Einsum": {"takes_long": True},
    "FFT": {"takes_long": True},
    "FFT2D": {"takes_long": True},
    "FFT3D": {"takes_long": True},
    "IFFT": {"takes_long": True},
    "IFFT2D": {"takes_long": True},
    "IFFT3D": {"takes_long": True},
    "IRFFT": {"takes_long": True},
    "IRFFT2D": {"takes_long": True},
    "IRFFT3D": {"takes_long": True},
    "LogMatrixDeterminant": {},
    "Lu": {},
    "MatMul": {"takes_long": True},
    "MatrixDeterminant": {},
    "MatrixInverse": {"takes_long": True},
    "MatrixLogarithm": {},
    "MatrixSolve": {"takes_long": True},
    "MatrixSolveLs": {"takes_long": True},
    "MatrixSquareRoot": {},
    "MatrixTriangularSolve": {"takes_long": True},
    "Qr": {"takes_long": True},
    "RFFT": {"takes_long": True},
    "RFFT2D": {"takes_long": True},
    "RFFT3D": {"takes_long": True},
    "SelfAdjointEigV2": {"takes_long": True},
    "SparseMatMul": {"takes_long": True},
    "Svd": {"takes_long": True},
    "TridiagonalMatMul": {"takes_long": True},
    "TridiagonalSolve": {"takes_long": True},
    "XlaEinsum": {"takes_long": True},
    "_FusedMatMul": {"takes_long": True},
}
